// S3 by minio-go; a folder is a prefix.
package main

import (
	"bytes"
	"context"
	"io"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"
)

const bucket = "peers"

type s3 struct{ client *minio.Client }

func dialS3(address string, settings map[string]string) (peer, error) {
	transport, err := minio.DefaultTransport(false)
	if err != nil {
		return nil, err
	}
	transport.MaxIdleConnsPerHost = 64
	client, err := minio.New(address, &minio.Options{
		Creds: credentials.NewStaticV4(settings["user"], settings["password"], ""), Transport: transport,
	})
	if err != nil {
		return nil, err
	}
	exists, err := client.BucketExists(context.Background(), bucket)
	if err == nil && !exists {
		err = client.MakeBucket(context.Background(), bucket, minio.MakeBucketOptions{})
	}
	return &s3{client}, err
}

func (s *s3) makeFolder(string) error { return nil }

func (s *s3) put(name string, size int64) error {
	// One stream: no more than one part at a time.
	options := minio.PutObjectOptions{NumThreads: 1}
	_, err := s.client.PutObject(context.Background(), bucket, name, largeFile(size), size, options)
	return err
}

func (s *s3) get(name string) (int64, error) {
	object, err := s.client.GetObject(context.Background(), bucket, name, minio.GetObjectOptions{})
	if err != nil {
		return 0, err
	}
	defer object.Close()
	return io.Copy(io.Discard, object)
}

func (s *s3) create(name string, data []byte) error {
	size := int64(len(data))
	_, err := s.client.PutObject(context.Background(), bucket, name, bytes.NewReader(data), size, minio.PutObjectOptions{})
	return err
}

func (s *s3) read(name string) (int, error) {
	got, err := s.get(name)
	return int(got), err
}

func (s *s3) stat(name string) error {
	_, err := s.client.StatObject(context.Background(), bucket, name, minio.StatObjectOptions{})
	return err
}

func (s *s3) list(folder string) (int, error) {
	found := 0
	options := minio.ListObjectsOptions{Prefix: folder + "/small-", Recursive: true}
	for object := range s.client.ListObjects(context.Background(), bucket, options) {
		if object.Err != nil {
			return found, object.Err
		}
		found++
	}
	return found, nil
}
