package regcache

import "errors"

// ProbeMembarrier returns nil if hits need no memory barrier of their own, since
// the side that invalidates can make one in every thread (membarrier(2)), else
// one line that says why not. The cache works either way.
func ProbeMembarrier() error {
	if !haveMembarrier() {
		return errors.New("membarrier unavailable: kernel older than 4.14, or a seccomp filter forbids it; every hit costs a memory barrier")
	}
	return nil
}
