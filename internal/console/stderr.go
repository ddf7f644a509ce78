package console

import "golang.org/x/sys/unix"

// Write writes the text to standard error, as much of it as somebody takes. Any thread may call it. It never ends the
// process, as os.Stderr does where nobody reads any more (EPIPE), even in a library whose program ignores SIGPIPE.
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
