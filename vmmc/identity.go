package vmmc

import (
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/rand"
	"crypto/sha256"
	"crypto/subtle"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"time"
)

// certificates is the configuration of mutual TLS for a connection to host, or at a listener.
func certificates(o *Options, host string) *tls.Config {
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{*o.Certificate},
		RootCAs:      o.Authorities, ServerName: host,
		ClientCAs: o.Authorities, ClientAuth: tls.RequireAndVerifyClientCert,
		SessionTicketsDisabled: true, // every connection proves its identity anew
		VerifyConnection: func(s tls.ConnectionState) error {
			if certifiedName(s) == "" {
				return fmt.Errorf("%w: the certificate has no name", ErrIdentity)
			}
			return nil
		},
	}
}

// certifiedName is the name in a peer's certificate; empty for those made of a token.
func certifiedName(s tls.ConnectionState) string {
	c := s.PeerCertificates[0]
	if len(c.DNSNames) > 0 {
		return c.DNSNames[0]
	}
	return c.Subject.CommonName
}

// tokenTLS is the configuration of TLS between those who know a token. Each derives the same key pair
// from it, and accepts a peer that has this key. So the token itself is never sent, and a connection that
// a token opens is as private as one with certificates.
func tokenTLS(token string) (*tls.Config, error) {
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
				return fmt.Errorf("%w: another token", ErrIdentity)
			}
			return nil
		},
	}, nil
}

// fileToken reads the token that only this user can read, and makes one if there is none.
func fileToken(path string) (string, error) {
	if path == "" {
		dir := os.Getenv("XDG_RUNTIME_DIR")
		if dir == "" {
			dir = filepath.Join(os.TempDir(), fmt.Sprintf("pinwheel-%d", os.Geteuid()))
			if err := os.Mkdir(dir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
				return "", err
			}
			if err := checkOwn(dir); err != nil {
				return "", err
			}
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
	random := make([]byte, minToken/2)
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

// checkOwn refuses a directory in which others can put or remove files: somebody may have made it first.
func checkOwn(dir string) error {
	info, err := os.Lstat(dir)
	if err != nil {
		return err
	}
	owner := info.Sys().(*syscall.Stat_t).Uid
	if !info.IsDir() || info.Mode().Perm()&0o077 != 0 || int(owner) != os.Geteuid() {
		return fmt.Errorf("%w: %s must be a directory of user %d alone", ErrIdentity, dir, os.Geteuid())
	}
	return nil
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
		return "", fmt.Errorf("%w: %s must be a file of user %d that no other can read", ErrIdentity, path, os.Geteuid())
	}
	b := make([]byte, 1024)
	n, err := f.Read(b)
	if err != nil {
		return "", err
	}
	token := strings.TrimSpace(string(b[:n]))
	if len(token) < minToken {
		return "", fmt.Errorf("%w: %s has a token of %d bytes: it must have %d", ErrIdentity, path, len(token), minToken)
	}
	return token, nil
}
