// WebDAV by net/http.
package main

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
)

type webdav struct {
	client *http.Client
	base   string
}

func dialWebdav(address string, _ map[string]string) (peer, error) {
	transport := &http.Transport{MaxIdleConnsPerHost: 64}
	return &webdav{&http.Client{Transport: transport}, "http://" + address + "/"}, nil
}

func (w *webdav) makeFolder(name string) error {
	_, err := w.call("MKCOL", name+"/", nil, 0)
	return err
}

func (w *webdav) put(name string, size int64) error {
	_, err := w.call(http.MethodPut, name, largeFile(size), size)
	return err
}

func (w *webdav) get(name string) (int64, error) { return w.call(http.MethodGet, name, nil, 0) }

func (w *webdav) create(name string, data []byte) error {
	_, err := w.call(http.MethodPut, name, bytes.NewReader(data), int64(len(data)))
	return err
}

func (w *webdav) read(name string) (int, error) {
	got, err := w.get(name)
	return int(got), err
}

func (w *webdav) stat(name string) error {
	_, err := w.call(http.MethodHead, name, nil, 0)
	return err
}

func (w *webdav) list(folder string) (int, error) {
	reply, err := w.request("PROPFIND", folder+"/", nil, 0)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	found := -1
	for decoder := xml.NewDecoder(reply.Body); ; {
		token, err := decoder.Token()
		if err == io.EOF {
			return found, nil
		}
		if err != nil {
			return found, err
		}
		if element, ok := token.(xml.StartElement); ok && element.Name.Local == "response" {
			found++
		}
	}
}

// Returns the bytes of the reply, which are dropped.
func (w *webdav) call(method, name string, body io.Reader, size int64) (int64, error) {
	reply, err := w.request(method, name, body, size)
	if err != nil {
		return 0, err
	}
	defer reply.Body.Close()
	return io.Copy(io.Discard, reply.Body)
}

func (w *webdav) request(method, name string, body io.Reader, size int64) (*http.Response, error) {
	request, err := http.NewRequest(method, w.base+name, body)
	if err != nil {
		return nil, err
	}
	request.ContentLength = size
	request.Header.Set("Depth", "1")
	reply, err := w.client.Do(request)
	if err == nil && reply.StatusCode >= 300 {
		reply.Body.Close()
		return nil, fmt.Errorf("%s %s: %s", method, name, reply.Status)
	}
	return reply, err
}
