// Package identity makes the ends of a TLS connection prove who they are: by certificates, or by a token that both
// know.
package identity

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"math/big"
	"os"
	"strings"
	"syscall"
	"time"
)

// Err is the error of a peer that is not who it should be, or who can't prove it.
var Err = errors.New("vmmc: identity refused")

// MinToken is the shortest token, in bytes. A peer that has not proved anything yet sees a public key that
// is derived from it, and could try out short ones.
const MinToken = 32

// Certificates is the configuration of mutual TLS for a connection to host, or at a listener.
func Certificates(own *tls.Certificate, authorities *x509.CertPool, host string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*own},
		RootCAs:      authorities, ServerName: host,
		ClientCAs: authorities, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, // every connection proves its identity anew
		VerifyConnection: func(s tls.ConnectionState) error {
			if CertifiedName(s) == "" {
				return fmt.Errorf("%w: the certificate has no name", Err)
			}
			return nil
		},
	}
}

// CertifiedName is the name in a peer's certificate; empty for those made of a token.
func CertifiedName(s tls.ConnectionState) string {
	c := s.PeerCertificates[0]
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

// Token is the configuration of TLS between those who know a token. Each derives the same key pair
// from it, and accepts a peer that has this key. So the token itself is never sent, and a connection that
// a token opens is as private as one with certificates.
func Token(token string) (*tls.Config, error) {
	seed, err := hkdf.Key(sha256.New, []byte(token), nil, "pinwheel vmmc token, version 1", ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	key := ed25519.NewKeyFromSeed(seed)
	public := key.Public().(ed25519.PublicKey)
	template := x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().AddDate(100, 0, 0)}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, public, key)
	if err != nil {
		return nil, err
	}
	return &tls.Config{
		MinVersion:             tls.VersionTLS13,
		Certificates:           []tls.Certificate{{Certificate: [][]byte{der}, PrivateKey: key}},
		ClientAuth:             tls.RequireAnyClientCert,
		SessionTicketsDisabled: true,
		InsecureSkipVerify:     true, // no authority issued these: VerifyConnection compares the key
		VerifyConnection: func(s tls.ConnectionState) error {
			its, ok := s.PeerCertificates[0].PublicKey.(ed25519.PublicKey)
			if !ok || subtle.ConstantTimeCompare(its, public) != 1 {
				return fmt.Errorf("%w: the other end has another token, or none", Err)
			}
			return nil
		},
	}, nil
}

// ReadToken reads the token in a file, which must be of this user, and readable for nobody else.
func ReadToken(path string) (string, error) {
	// Not blocking: open(2) of a FIFO would wait for a writer.
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NOFOLLOW|syscall.O_NONBLOCK, 0)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.Mode().IsRegular() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Geteuid() {
		return "", fmt.Errorf("%w: %s must be a file of user %d that no other can read", Err, path, os.Geteuid())
	}
	b := make([]byte, 1024)
	n, err := f.Read(b)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b[:n]))
	if len(token) < MinToken {
		return "", fmt.Errorf("%w: %s has a token of %d bytes: it must have %d", Err, path, len(token), MinToken)
	}
	return token, nil
}

// CheckOwn refuses a directory in which others can put or remove files: somebody may have made it first.
func CheckOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Geteuid() {
		return fmt.Errorf("%w: %s must be a directory of user %d alone", Err, dir, os.Geteuid())
	}
	return nil
}
