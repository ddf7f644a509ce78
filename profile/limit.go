package profile

import "golang.org/x/sys/unix"

// fits reports whether this process may write a file of this many bytes (ulimit -f). To try would be a SIGXFSZ, which
// ends a program (setrlimit(2)).
func fits(bytes int) error {
	var l unix.Rlimit
	if unix.Getrlimit(unix.RLIMIT_FSIZE, &l) == nil && uint64(bytes) > l.Cur {
		return unix.EFBIG
	}
	return nil
}
