// Package stderr writes to standard error without ever ending the process. os.Stderr does so where nobody reads any
// more (EPIPE), even in a library whose program ignores SIGPIPE.
package stderr

import "golang.org/x/sys/unix"

// Write writes the text, as much of it as somebody takes. Any thread may call it.
func Write(text string) {
	for b := []byte(text); len(b) > 0; {
		n, err := unix.Write(unix.Stderr, b)
		if err == unix.EINTR {
			continue
		}
		if err != nil || n <= 0 {
			return // there is nowhere else to say that it failed
		}
		b = b[n:]
	}
}
