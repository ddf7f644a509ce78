package rc

import (
	"net"
	"strings"
	"testing"
)

func TestBothSidesLearnTheOthersEndpoint(t *testing.T) {
	a, b := net.Pipe() // unbuffered: both writing first must not block
	sides := [2]endpoint{{QP: 17, PSN: 1 << 23, LID: 3, MTU: 5, Reads: 16, GID: [16]byte{15: 1}}, {QP: 18, MTU: 3}}
	type result struct {
		got endpoint
		err error
	}
	other := make(chan result)
	go func() {
		got, err := swapEndpoints(b, sides[1])
		other <- result{got, err}
	}()
	got, err := swapEndpoints(a, sides[0])
	theirs := <-other
	for i, r := range []result{{got, err}, theirs} {
		want := sides[1-i]
		want.Magic = magic
		if r.err != nil || r.got != want {
			t.Errorf("side %d learnt %+v, %v; want %+v", i, r.got, r.err, want)
		}
	}
}

func TestStrangersAreRefused(t *testing.T) {
	for name, hello := range map[string]string{
		"another protocol": "GET / HTTP/1.1\r\nHost: example\r\nAccept: */*\r\n\r\n",
		"a short message":  "PWHLRC01",
		"no MTU":           string(magic[:]) + strings.Repeat("\x00", 28),
	} {
		t.Run(name, func(t *testing.T) {
			a, b := net.Pipe()
			go func() {
				_, _ = b.Read(make([]byte, 100))
				_, _ = b.Write([]byte(hello))
				_ = b.Close()
			}()
			if got, err := swapEndpoints(a, endpoint{MTU: 5}); err == nil {
				t.Errorf("took %+v", got)
			}
		})
	}
}
