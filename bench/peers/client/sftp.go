// SFTP by pkg/sftp over golang.org/x/crypto/ssh with their default ciphers.
package main

import (
	"fmt"
	"io"
	"os"

	"github.com/pkg/sftp"
	"golang.org/x/crypto/ssh"
)

type sftpPeer struct {
	client *sftp.Client
	base   string
}

func dialSftp(address string, settings map[string]string) (peer, error) {
	key, err := os.ReadFile(settings["key"])
	if err != nil {
		return nil, err
	}
	signer, err := ssh.ParsePrivateKey(key)
	if err != nil {
		return nil, err
	}
	connection, err := ssh.Dial("tcp", address, &ssh.ClientConfig{
		User: settings["user"], Auth: []ssh.AuthMethod{ssh.PublicKeys(signer)},
		// A server on this machine that was started a moment ago.
		HostKeyCallback: ssh.InsecureIgnoreHostKey(),
	})
	if err != nil {
		return nil, err
	}
	client, err := sftp.NewClient(connection, sftp.UseConcurrentWrites(true))
	return &sftpPeer{client, settings["base"] + "/"}, err
}

func (s *sftpPeer) makeFolder(name string) error { return s.client.Mkdir(s.base + name) }

func (s *sftpPeer) put(name string, size int64) error {
	file, err := s.client.Create(s.base + name)
	if err != nil {
		return err
	}
	if _, err := file.ReadFromWithConcurrency(largeFile(size), 64); err != nil {
		return err
	}
	return file.Close()
}

func (s *sftpPeer) get(name string) (int64, error) {
	file, err := s.client.Open(s.base + name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return file.WriteTo(io.Discard)
}

func (s *sftpPeer) create(name string, data []byte) error {
	file, err := s.client.Create(s.base + name)
	if err != nil {
		return err
	}
	if _, err := file.Write(data); err != nil {
		return err
	}
	return file.Close()
}

func (s *sftpPeer) read(name string) (int, error) {
	file, err := s.client.Open(s.base + name)
	if err != nil {
		return 0, err
	}
	defer file.Close()
	return io.ReadFull(file, make([]byte, smallFileBytes))
}

func (s *sftpPeer) stat(name string) error {
	found, err := s.client.Stat(s.base + name)
	if err == nil && found.Size() != smallFileBytes {
		return fmt.Errorf("a size of %d came", found.Size())
	}
	return err
}

func (s *sftpPeer) list(folder string) (int, error) {
	entries, err := s.client.ReadDir(s.base + folder)
	return len(entries), err
}
