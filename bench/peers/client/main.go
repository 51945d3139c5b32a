// The load of the side-by-side with other servers: one program, one adapter for each protocol.
//
// client KIND ADDRESS [NAME=VALUE...] reads a task a line as JSON and answers each with a line.
package main

import (
	"bufio"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// A connection to a server. Names have a folder and a file, without a slash before them.
type peer interface {
	makeFolder(name string) error
	put(name string, size int64) error
	get(name string) (int64, error)
	create(name string, data []byte) error
	read(name string) (int, error)
	stat(name string) error
	list(folder string) (int, error)
}

type task struct {
	Task     string
	Folder   string
	Bytes    int64
	Streams  int
	Files    int
	InFlight int
}

type answer struct {
	Seconds float64 `json:"seconds"`
	Error   string  `json:"error,omitempty"`
}

const chunkBytes = 4_000_000
const smallFileBytes = 4_096

// The content of all large files: random, and the same in every 4,000,000 bytes.
var content = make([]byte, chunkBytes)

func main() {
	if _, err := rand.Read(content); err != nil {
		fail(err)
	}
	settings := map[string]string{}
	for _, word := range os.Args[3:] {
		name, value, _ := strings.Cut(word, "=")
		settings[name] = value
	}
	dial := map[string]func(string, map[string]string) (peer, error){
		"grove": dialGrove, "sftp": dialSftp, "webdav": dialWebdav, "s3": dialS3,
	}[os.Args[1]]
	var peers []peer
	connection := func(at int) peer {
		for len(peers) <= at {
			one, err := dial(os.Args[2], settings)
			if err != nil {
				fail(err)
			}
			peers = append(peers, one)
		}
		return peers[at]
	}
	connection(0)
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var next task
		if err := json.Unmarshal(lines.Bytes(), &next); err != nil {
			fail(err)
		}
		for at := range next.Streams {
			connection(at)
		}
		start := time.Now()
		err := run(next, connection)
		result := answer{Seconds: time.Since(start).Seconds()}
		if err != nil {
			result.Error = err.Error()
		}
		line, _ := json.Marshal(result)
		fmt.Println(string(line))
	}
}

func fail(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

func run(next task, connection func(int) peer) error {
	first := connection(0)
	switch next.Task {
	case "makeFolder":
		return first.makeFolder(next.Folder)
	case "put", "get":
		return each(next.Streams, next.Streams, func(at int) error {
			name := fmt.Sprintf("%s/large-%d-of-%d", next.Folder, at, next.Streams)
			if next.Task == "put" {
				return connection(at).put(name, next.Bytes)
			}
			got, err := connection(at).get(name)
			if err == nil && got != next.Bytes {
				return fmt.Errorf("%d bytes came", got)
			}
			return err
		})
	case "create":
		data := content[:smallFileBytes]
		return each(next.Files, next.InFlight, func(at int) error { return first.create(small(next, at), data) })
	case "read":
		return each(next.Files, next.InFlight, func(at int) error {
			got, err := first.read(small(next, at))
			if err == nil && got != smallFileBytes {
				return fmt.Errorf("%d bytes came", got)
			}
			return err
		})
	case "stat":
		return each(next.Files, next.InFlight, func(at int) error { return first.stat(small(next, at)) })
	case "list":
		found, err := first.list(next.Folder)
		if err == nil && found != next.Files {
			return fmt.Errorf("%d entries came", found)
		}
		return err
	}
	return fmt.Errorf("there is no task %s", next.Task)
}

func small(next task, at int) string {
	return fmt.Sprintf("%s/small-%d", next.Folder, at)
}

// Calls work for 0 to count-1, inFlight at a time, and returns one of the errors.
func each(count, inFlight int, work func(int) error) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var running sync.WaitGroup
	for range inFlight {
		running.Go(func() {
			for at := int(next.Add(1)) - 1; at < count && failed.Load() == nil; at = int(next.Add(1)) - 1 {
				if err := work(at); err != nil {
					failed.Store(&err)
				}
			}
		})
	}
	running.Wait()
	if err := failed.Load(); err != nil {
		return *err
	}
	return nil
}

// The bytes of a large file as a stream.
func largeFile(size int64) io.Reader {
	return io.LimitReader(&repeated{}, size)
}

type repeated struct{ at int }

func (r *repeated) Read(into []byte) (int, error) {
	copied := copy(into, content[r.at:])
	r.at = (r.at + copied) % len(content)
	return copied, nil
}
