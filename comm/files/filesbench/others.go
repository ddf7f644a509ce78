package filesbench

import (
	"crypto/ed25519"
	"crypto/rand"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"pinwheel/internal/measure"
)

// plainSendfile is the least that a file server can do: one sendfile(2) into a connection, whose other end writes a
// file. Both ends are in this process.
func plainSendfile(s *stage, dest string) (cpu, wall time.Duration, err error) {
	source, err := os.Open(s.sourceOf(File))
	if err != nil {
		return 0, 0, err
	}
	defer source.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return 0, 0, err
	}
	defer l.Close()
	out, err := os.Create(filepath.Join(dest, fileName))
	if err != nil {
		return 0, 0, err
	}
	defer out.Close()
	busy, began := measure.ProcessorTime(), time.Now()
	sent := make(chan error, 1)
	go func() {
		c, err := l.Accept()
		if err == nil {
			_, err = io.Copy(c, source) // sendfile(2)
			err = errors.Join(err, c.Close())
		}
		sent <- err
	}()
	c, err := net.Dial("tcp", l.Addr().String())
	if err != nil {
		return 0, 0, err
	}
	defer c.Close()
	b := make([]byte, 1<<20)
	_, err = io.CopyBuffer(struct{ io.Writer }{out}, struct{ io.Reader }{c}, b)
	wall, cpu = time.Since(began), measure.ProcessorTime()-busy
	return cpu, wall, errors.Join(err, <-sent)
}

const nginxConfiguration = `daemon off; %[1]s worker_processes 1; pid %[2]s/nginx.pid; error_log stderr;
events {}
http {
	access_log off; sendfile on; tcp_nopush on;
	client_body_temp_path %[2]s/t1; proxy_temp_path %[2]s/t2; fastcgi_temp_path %[2]s/t3; uwsgi_temp_path %[2]s/t4;
	scgi_temp_path %[2]s/t5;
	server { listen %[3]s; root %[4]s; }
	server {
		listen %[5]s ssl; root %[4]s;
		ssl_certificate %[2]s/certificate; ssl_certificate_key %[2]s/key; ssl_protocols TLSv1.3;
	}
}
`

// byNginx gets the file with curl from nginx, by a scheme.
func byNginx(scheme string) func(s *stage, dest string) (cpu, wall time.Duration, err error) {
	return func(s *stage, dest string) (cpu, wall time.Duration, err error) {
		clear, err := freePort()
		var secret, config, user string
		if err == nil {
			secret, err = freePort()
		}
		if err == nil {
			err = s.certificate()
		}
		if os.Geteuid() == 0 {
			user = "user root;"
		}
		if err == nil {
			config, err = s.write("nginx.conf", fmt.Sprintf(nginxConfiguration, user, s.dir, clear, s.source, secret))
		}
		if err != nil {
			return 0, 0, err
		}
		d, err := s.start("nginx", "-p", s.dir, "-c", config, "-e", "stderr")
		if err != nil {
			return 0, 0, err
		}
		at := map[string]string{"http": clear, "https": secret}[scheme]
		if err := d.listens(at); err != nil {
			_, stopErr := d.stop()
			return 0, 0, errors.Join(err, stopErr)
		}
		return s.both(d, "curl", "--silent", "--fail", "--insecure", "--output", filepath.Join(dest, fileName),
			scheme+"://"+at+"/"+fileName)
	}
}

// certificate makes one for nginx.
func (s *stage) certificate() error {
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(24 * time.Hour), DNSNames: []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return err
	}
	_, err = s.write("certificate", string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})))
	_, err2 := s.write("key", string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: private})))
	return errors.Join(err, err2)
}

const rsyncConfiguration = `address = 127.0.0.1
use chroot = no
log file = %s/rsync.log
%s[source]
path = %s
`

// byRsync gets a file or a tree from a daemon of rsync.
func byRsync(what string) func(s *stage, dest string) (cpu, wall time.Duration, err error) {
	return func(s *stage, dest string) (cpu, wall time.Duration, err error) {
		at, err := freePort()
		if err != nil {
			return 0, 0, err
		}
		_, port, _ := net.SplitHostPort(at) // freePort gives no other
		own := ""
		if os.Geteuid() == 0 {
			own = "uid = 0\ngid = 0\n"
		}
		config, err := s.write("rsyncd.conf", fmt.Sprintf(rsyncConfiguration, s.dir, own, s.source))
		if err != nil {
			return 0, 0, err
		}
		d, err := s.start("rsync", "--daemon", "--no-detach", "--port="+port, "--config="+config)
		if err != nil {
			return 0, 0, err
		}
		if err := d.listens(at); err != nil {
			_, stopErr := d.stop()
			return 0, 0, errors.Join(err, stopErr)
		}
		return s.both(d, "rsync", "--archive", "--whole-file", "rsync://"+at+"/source/"+filepath.Base(s.sourceOf(what)), dest)
	}
}
