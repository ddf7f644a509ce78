// Package peertest has ends with certificates, for tests of commands.
package peertest

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"os"
	"path/filepath"
	"testing"
	"time"

	"pinwheel/comm/peer"
)

// Name is the only name of this machine that the certificates of this package have.
const Name = "localhost"

// Certified returns an end that has a new certificate for this machine, and lets in whoever has the same.
func Certified(t testing.TB) (e peer.End) {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour),
		DNSNames: []string{Name}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	e.Certificate, e.Key = write("certificate", "CERTIFICATE", der), write("key", "PRIVATE KEY", private)
	e.Authorities, e.Peers = e.Certificate, []string{Name}
	return e
}
