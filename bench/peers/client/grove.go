// Grove by grpc-go with its default settings: messages encoded by hand, CRC-32 made and checked.
package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"fmt"
	"hash/crc32"
	"io"
	"os"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/mem"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/encoding/protowire"
)

type grove struct {
	connection *grpc.ClientConn
	ctx        context.Context
}

// Messages as they are on the wire: sent in parts, received whole.
type rawCodec struct{}

func (rawCodec) Name() string { return "proto" }
func (rawCodec) Marshal(message any) (mem.BufferSlice, error) {
	var parts mem.BufferSlice
	for _, part := range message.([][]byte) {
		parts = append(parts, mem.SliceBuffer(part))
	}
	return parts, nil
}
func (rawCodec) Unmarshal(data mem.BufferSlice, into any) error {
	*into.(*[]byte) = data.Materialize()
	return nil
}

func dialGrove(address string, settings map[string]string) (peer, error) {
	trust := insecure.NewCredentials()
	if file := settings["ca"]; file != "" {
		authority, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(authority)
		trust = credentials.NewTLS(&tls.Config{RootCAs: pool})
	}
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(trust),
		grpc.WithDefaultCallOptions(grpc.ForceCodecV2(rawCodec{}), grpc.MaxCallRecvMsgSize(8<<20)))
	if err != nil {
		return nil, err
	}
	g := &grove{connection, authorized("mock-jwt." + settings["owner"])}
	request := text(text(text(nil, 1, "peers"), 2, "0"), 3, "peers")
	reply, err := g.unary("RegisterClient", request)
	if err != nil {
		return nil, err
	}
	token, err := bytesField(reply, 1)
	g.ctx = authorized(string(token))
	return g, err
}

func authorized(token string) context.Context {
	return metadata.AppendToOutgoingContext(context.Background(), "authorization", "Bearer "+token)
}

func (g *grove) makeFolder(name string) error {
	_, err := g.unary("CreateDirectory", text(nil, 2, "/"+name))
	return err
}

func (g *grove) put(name string, size int64) error {
	stream, err := g.connection.NewStream(g.ctx, &grpc.StreamDesc{ClientStreams: true}, method("UploadFile"))
	if err != nil {
		return err
	}
	header := number(number(text(nil, 2, "/"+name), 3, uint64(size)), 4, 1)
	if err := stream.SendMsg([][]byte{nested(nil, 1, header, 0)}); err != nil {
		return err
	}
	for offset := int64(0); offset < size; offset += chunkBytes {
		data := content[:min(chunkBytes, size-offset)]
		chunk := number(nil, 1, uint64(offset))
		chunk = protowire.AppendFixed32(protowire.AppendTag(chunk, 2, protowire.Fixed32Type), crc32.ChecksumIEEE(data))
		chunk = protowire.AppendVarint(protowire.AppendTag(chunk, 3, protowire.BytesType), uint64(len(data)))
		if err := stream.SendMsg([][]byte{nested(nil, 2, chunk, len(data)), data}); err != nil && err != io.EOF {
			return err
		}
	}
	if err := stream.CloseSend(); err != nil {
		return err
	}
	var reply []byte
	return stream.RecvMsg(&reply)
}

func (g *grove) get(name string) (int64, error) {
	stream, err := g.connection.NewStream(g.ctx, &grpc.StreamDesc{ServerStreams: true}, method("DownloadFile"))
	if err != nil {
		return 0, err
	}
	if err := stream.SendMsg([][]byte{text(nil, 2, "/"+name)}); err != nil {
		return 0, err
	}
	if err := stream.CloseSend(); err != nil {
		return 0, err
	}
	received := int64(0)
	for {
		var reply []byte
		if err := stream.RecvMsg(&reply); err == io.EOF {
			return received, nil
		} else if err != nil {
			return received, err
		}
		chunk, err := bytesField(reply, 2)
		if err != nil {
			return received, err
		}
		if chunk == nil {
			continue
		}
		data, err := bytesField(chunk, 3)
		if err != nil {
			return received, err
		}
		if crc32.ChecksumIEEE(data) != fixedField(chunk, 2) {
			return received, fmt.Errorf("the checksum differs")
		}
		received += int64(len(data))
	}
}

func (g *grove) create(name string, data []byte) error {
	request := text(text(nil, 2, "/"+name), 3, string(data))
	request = protowire.AppendFixed32(protowire.AppendTag(request, 5, protowire.Fixed32Type), crc32.ChecksumIEEE(data))
	_, err := g.unary("CreateFile", request)
	return err
}

func (g *grove) read(name string) (int, error) {
	received, err := g.get(name)
	return int(received), err
}

func (g *grove) stat(name string) error {
	_, err := g.unary("GetAttr", text(nil, 2, "/"+name))
	return err
}

func (g *grove) list(folder string) (int, error) {
	found := 0
	for token := ""; ; {
		reply, err := g.unary("ListDir", text(number(text(nil, 2, "/"+folder), 3, 1_000), 4, token))
		if err != nil {
			return found, err
		}
		entries, err := fields(reply, 1)
		if err != nil {
			return found, err
		}
		found += len(entries)
		next, err := bytesField(reply, 2)
		if err != nil || len(next) == 0 {
			return found, err
		}
		token = string(next)
	}
}

func (g *grove) unary(name string, request []byte) ([]byte, error) {
	var reply []byte
	err := g.connection.Invoke(g.ctx, method(name), [][]byte{request}, &reply)
	return reply, err
}

func method(name string) string { return "/grove.v1.FileServer/" + name }

func text(message []byte, field protowire.Number, value string) []byte {
	return protowire.AppendString(protowire.AppendTag(message, field, protowire.BytesType), value)
}

func number(message []byte, field protowire.Number, value uint64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(message, field, protowire.VarintType), value)
}

// A message field whose last `after` bytes follow in another part.
func nested(message []byte, field protowire.Number, value []byte, after int) []byte {
	message = protowire.AppendTag(message, field, protowire.BytesType)
	return append(protowire.AppendVarint(message, uint64(len(value)+after)), value...)
}

// All occurrences of a field with a length.
func fields(message []byte, field protowire.Number) ([][]byte, error) {
	var found [][]byte
	for len(message) > 0 {
		number, kind, tagBytes := protowire.ConsumeTag(message)
		if tagBytes < 0 {
			return nil, protowire.ParseError(tagBytes)
		}
		valueBytes := protowire.ConsumeFieldValue(number, kind, message[tagBytes:])
		if valueBytes < 0 {
			return nil, protowire.ParseError(valueBytes)
		}
		if number == field && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(message[tagBytes:])
			found = append(found, value)
		}
		message = message[tagBytes+valueBytes:]
	}
	return found, nil
}

func bytesField(message []byte, field protowire.Number) ([]byte, error) {
	found, err := fields(message, field)
	if err != nil || len(found) == 0 {
		return nil, err
	}
	return found[len(found)-1], nil
}

func fixedField(message []byte, field protowire.Number) uint32 {
	for len(message) > 0 {
		number, kind, tagBytes := protowire.ConsumeTag(message)
		if number == field && kind == protowire.Fixed32Type {
			value, _ := protowire.ConsumeFixed32(message[tagBytes:])
			return value
		}
		message = message[tagBytes+protowire.ConsumeFieldValue(number, kind, message[tagBytes:]):]
	}
	return 0
}
