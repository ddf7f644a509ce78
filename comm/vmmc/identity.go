package vmmc

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"pinwheel/comm/vmmc/broker"
	"pinwheel/comm/vmmc/internal/identity"
)

// ReadToken reads the token in a file, which must be of this user, and readable for nobody else.
func ReadToken(path string) (string, error) { return identity.ReadToken(path) }

// ReadCertificate reads a certificate, its key, and the certificates of those who issue the certificates of peers,
// from files in PEM.
func ReadCertificate(certificate, key, authorities string) (*tls.Certificate, *x509.CertPool, error) {
	pair, err := tls.LoadX509KeyPair(certificate, key)
	if err != nil {
		return nil, nil, err
	}
	pem, err := os.ReadFile(authorities)
	if err != nil {
		return nil, nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(pem) {
		return nil, nil, fmt.Errorf("%s has no certificate", authorities)
	}
	return &pair, pool, nil
}

// fileToken reads the token that only this user can read, and makes one if there is none.
func fileToken(path string) (string, error) {
	if path == "" {
		dir, err := broker.RuntimeDir()
		if err != nil {
			return "", err
		}
		path = filepath.Join(dir, "vmmc.token")
	}
	token, err := ReadToken(path)
	if !errors.Is(err, fs.ErrNotExist) {
		return token, err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".vmmc.token-*") // mode 0600
	if err != nil {
		return "", err
	}
	defer os.Remove(f.Name())
	random := make([]byte, identity.MinToken/2)
	rand.Read(random)
	_, err = f.WriteString(hex.EncodeToString(random) + "\n")
	if err := errors.Join(err, f.Close()); err != nil {
		return "", err
	}
	// Whoever links first has made it; the others read that.
	if err := os.Link(f.Name(), path); err != nil && !errors.Is(err, fs.ErrExist) {
		return "", err
	}
	return ReadToken(path)
}
