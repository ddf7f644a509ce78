package identity

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"errors"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"pinwheel/internal/testwait"
)

// handshake connects two configurations, and returns the errors of both ends, and what each sees of the other. With TLS
// 1.3 a client hears what the server thinks of it when it reads.
func handshake(t *testing.T, client, server *tls.Config) (errs [2]error, seen [2]tls.ConnectionState) {
	t.Helper()
	testwait.Bound(t)
	l, err := net.Listen("tcp", "127.0.0.1:0") // a pipe has no room for what both say at a time
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	a, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	b, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	ends := [2]*tls.Conn{tls.Client(a, client), tls.Server(b, server)}
	done := make(chan int)
	for k, c := range ends {
		go func() {
			defer func() { done <- k }()
			if errs[k] = c.Handshake(); errs[k] == nil && k == 0 {
				_, errs[k] = c.Read(make([]byte, 1))
			}
			if errs[k] == nil && k == 1 {
				_, errs[k] = c.Write([]byte("x"))
			}
			seen[k] = c.ConnectionState()
			_ = c.NetConn().Close() // an alert would wait for the other end
		}()
	}
	testwait.Receive(t, "an end", done)
	testwait.Receive(t, "the other end", done)
	return errs, seen
}

func TestTokenConnectsThoseWhoKnowIt(t *testing.T) {
	const token = "0123456789abcdef0123456789abcdef"
	config := func(token string) *tls.Config {
		c, err := Token(token)
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	errs, seen := handshake(t, config(token), config(token))
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	for _, s := range seen {
		if s.Version != tls.VersionTLS13 || CertifiedName(s) != "" {
			t.Errorf("version %#x, name %q", s.Version, CertifiedName(s))
		}
	}
	other := config(strings.Repeat("x", MinToken))
	if errs, _ := handshake(t, other, config(token)); !errors.Is(errs[0], Err) {
		t.Errorf("who dials takes another token: %v", errs)
	}
	// One who takes everybody learns nothing by that, and is not let in.
	lax := other.Clone()
	lax.VerifyConnection = nil
	if errs, _ := handshake(t, lax, config(token)); !errors.Is(errs[1], Err) || errs[0] == nil {
		t.Errorf("who listens takes another token: %v", errs)
	}
	// The certificate is public: without the key it proves nothing.
	thief := lax.Clone()
	thief.Certificates = []tls.Certificate{{
		Certificate: config(token).Certificates[0].Certificate, PrivateKey: other.Certificates[0].PrivateKey,
	}}
	if errs, _ := handshake(t, thief, config(token)); errs[1] == nil {
		t.Error("a certificate without its key was taken")
	}
}

// issue makes a certificate that signs itself, or that an authority signs.
func issue(t *testing.T, c *x509.Certificate, by *tls.Certificate) tls.Certificate {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c.SerialNumber, c.NotAfter = big.NewInt(1), time.Now().Add(time.Hour)
	parent, signer := c, key
	if by != nil {
		parent, signer = by.Leaf, by.PrivateKey.(ed25519.PrivateKey)
	}
	der, err := x509.CreateCertificate(rand.Reader, c, parent, key.Public(), signer)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

func authority(t *testing.T) (tls.Certificate, *x509.CertPool) {
	a := issue(t, &x509.Certificate{
		Subject: pkix.Name{CommonName: "authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}, nil)
	pool := x509.NewCertPool()
	pool.AddCert(a.Leaf)
	return a, pool
}

func TestCertificatesProveNames(t *testing.T) {
	ca, pool := authority(t)
	stranger, _ := authority(t)
	both := []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	leaf := func(by *tls.Certificate, common string, dns ...string) *tls.Certificate {
		c := issue(t, &x509.Certificate{Subject: pkix.Name{CommonName: common}, DNSNames: dns, ExtKeyUsage: both}, by)
		return &c
	}
	server := leaf(&ca, "common", "server.example", "other.example")
	errs, seen := handshake(t,
		Certificates(leaf(&ca, "a client"), pool, "server.example"), Certificates(server, pool, ""))
	if errs[0] != nil || errs[1] != nil {
		t.Fatal(errs)
	}
	if of, by := CertifiedName(seen[0]), CertifiedName(seen[1]); of != "server.example" || by != "a client" {
		t.Errorf("the server is %q, the client %q", of, by)
	}
	for what, c := range map[string]struct {
		client, server *tls.Certificate
		host           string
		fails          int // end
	}{
		"a client of another authority": {leaf(&stranger, "a client"), server, "server.example", 1},
		"a server of another authority": {leaf(&ca, "a client"), leaf(&stranger, "", "server.example"), "server.example", 0},
		"a server by another name":      {leaf(&ca, "a client"), server, "elsewhere.example", 0},
		"a client without a name":       {leaf(&ca, ""), server, "server.example", 1},
	} {
		errs, _ := handshake(t, Certificates(c.client, pool, c.host), Certificates(c.server, pool, ""))
		if errs[c.fails] == nil {
			t.Errorf("%s: %v", what, errs)
		}
	}
}

func TestTokenFileIsOfItsOwnerAlone(t *testing.T) {
	dir := t.TempDir()
	token := strings.Repeat("t", MinToken)
	file := func(name, content string, mode fs.FileMode) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good", "  "+token+"\n", 0o600)
	if got, err := ReadToken(good); got != token || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	if _, err := ReadToken(filepath.Join(dir, "none")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a file that is not there: %v", err)
	}
	link, fifo := filepath.Join(dir, "link"), filepath.Join(dir, "fifo")
	if err := errors.Join(os.Symlink(good, link), unix.Mkfifo(fifo, 0o600)); err != nil {
		t.Fatal(err)
	}
	testwait.Bound(t) // nobody writes to the FIFO
	for what, path := range map[string]string{
		"readable for the group": file("group", token, 0o640), "readable for all": file("all", token, 0o604),
		"too short": file("short", token[1:], 0o600), "empty": file("empty", "", 0o600),
		"a link": link, "a FIFO": fifo, "a directory": dir,
	} {
		if got, err := ReadToken(path); err == nil {
			t.Errorf("%s: %q", what, got)
		}
	}
	if os.Geteuid() == 0 {
		if err := os.Chown(good, 65534, -1); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadToken(good); !errors.Is(err, Err) {
			t.Errorf("of another user: %v", err)
		}
	}
}

func TestDirectoryIsOfItsOwnerAlone(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "d")
	if err := CheckOwn(dir); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("none: %v", err)
	}
	if err := os.Mkdir(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	if err := CheckOwn(dir); err != nil {
		t.Error(err)
	}
	link := dir + "-link"
	if err := os.Symlink(dir, link); err != nil {
		t.Fatal(err)
	}
	if err := CheckOwn(link); !errors.Is(err, Err) {
		t.Errorf("a link: %v", err)
	}
	for _, mode := range []fs.FileMode{0o701, 0o710, 0o777} {
		if err := os.Chmod(dir, mode); err != nil {
			t.Fatal(err)
		}
		if err := CheckOwn(dir); !errors.Is(err, Err) {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if os.Geteuid() == 0 {
		if err := errors.Join(os.Chmod(dir, 0o700), os.Chown(dir, 65534, -1)); err != nil {
			t.Fatal(err)
		}
		if err := CheckOwn(dir); !errors.Is(err, Err) {
			t.Errorf("of another user: %v", err)
		}
	}
}
