package profile

import (
	"encoding/binary"
	"errors"
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// The ranks of a node that end at about the same time elect one of them to write the file: whoever binds the name of an
// abstract Unix socket (unix(7)) first. The others send it their parts, and wait for its answer until the file is
// written. Should it die before that, they elect another one. So a part is lost only together with its rank. Nothing of
// that is left in the file system.

// Tests set others.
var (
	quiet    = 250 * time.Millisecond // for which nobody hands in a part, ends the wait for more
	longest  = 2 * time.Second        // that the first waits for all others
	patience = 10 * time.Second       // of a rank for the one that writes, in all
)

// pause is how long nobody hands in a part before the participants are counted. To count them takes a microsecond for
// each rank that there may be: where the launcher tells only how many the job has, that is a lot.
const pause = 2 * time.Millisecond

// errRetry: the writer has gone, or has closed its door.
var errRetry = errors.New("the process that writes the profile has gone")

// errStuck: whoever has the name takes no part.
var errStuck = errors.New("the process that writes the profile takes no part")

// errFailed: the writer could not write, and has told its user.
var errFailed = errors.New("another rank could not write the profile")

// HandIn has the parts of all participants of a node that call it at about the same time written together. write is
// called in one of them. Only there HandIn returns its error. It takes 10 s at most, and what write takes.
func (p *Participant) HandIn(mine Part, write func(parts []Part) error) error {
	if p.node.Ranks <= 1 {
		return write([]Part{mine})
	}
	name := p.node.name(p.key, "")
	for end := time.Now().Add(patience); time.Now().Before(end); {
		door, err := listen(name)
		switch {
		case err == nil:
			return p.collect(door, mine, write)
		case !errors.Is(err, unix.EADDRINUSE):
			return write([]Part{mine})
		}
		switch err := send(name, mine, end); {
		case err == nil || errors.Is(err, errFailed):
			return nil
		case !errors.Is(err, errRetry):
			return write([]Part{mine})
		}
		time.Sleep(time.Millisecond) // it closes its door just now
	}
	return write([]Part{mine})
}

func listen(name unix.Sockaddr) (fd int, err error) {
	fd, err = socket()
	if err == nil {
		if err = unix.Bind(fd, name); err == nil {
			err = unix.Listen(fd, unix.SOMAXCONN)
		}
		if err != nil {
			unix.Close(fd)
		}
	}
	return fd, err
}

func socket() (int, error) {
	return unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
}

// collect takes the parts of others, writes all and answers. It owns door.
func (p *Participant) collect(door int, mine Part, write func(parts []Part) error) error {
	parts, waiting := []Part{mine}, []int{}
	for end := time.Now().Add(longest); len(parts) < p.node.Ranks && time.Now().Before(end); {
		if !readable(door, pause) && (len(parts) >= p.present() || !readable(door, min(quiet, time.Until(end)))) {
			break
		}
		fd, _, err := unix.Accept4(door, unix.SOCK_CLOEXEC)
		if err != nil {
			break
		}
		part, err := receive(fd)
		if err != nil {
			unix.Close(fd) // a rank that died, or somebody else
			continue
		}
		parts, waiting = append(parts, part), append(waiting, fd)
	}
	unix.Close(door) // whoever comes now writes by itself
	err := write(parts)
	answer := answerOK
	if err != nil {
		answer = answerFailed
	}
	for _, fd := range waiting {
		_, _ = unix.SendmsgN(fd, []byte{answer}, nil, nil, unix.MSG_NOSIGNAL) // it may have died
		unix.Close(fd)
	}
	return err
}

const (
	answerOK     byte = 1
	answerFailed byte = 2
)

// A part on its way: rank, length of the trained entries, length of the modules, and that many bytes.
const (
	partHeaderBytes = 12
	maxModules      = 1 << 20 // bytes
)

// receive reads the part of a process of this user.
func receive(fd int) (Part, error) {
	if err := checkPeer(fd); err != nil {
		return Part{}, err
	}
	end := time.Now().Add(quiet)
	var h [partHeaderBytes]byte
	if err := transfer(fd, h[:], end, unix.Read); err != nil {
		return Part{}, err
	}
	p := Part{Rank: int(binary.LittleEndian.Uint32(h[:]))}
	n, modules := binary.LittleEndian.Uint32(h[4:]), binary.LittleEndian.Uint32(h[8:])
	if p.Rank >= maxRanks || n > maxPart || modules > maxModules {
		return p, ErrDamaged
	}
	b := make([]byte, n+modules)
	if err := transfer(fd, b, end, unix.Read); err != nil {
		return p, err
	}
	in := cursor{b: b[n:]}
	p.packed, p.Modules = b[:n], in.modules()
	if in.bad || len(in.b) > 0 {
		return p, ErrDamaged
	}
	return p, nil
}

// send hands a part to the process that writes, and waits until that has written, or until end.
func send(name unix.Sockaddr, p Part, end time.Time) error {
	fd, err := socket()
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	sent := time.Now().Add(quiet + longest)
	if sent.After(end) {
		sent = end
	}
	// connect(2) waits for room in the queue of a process that doesn't accept: a stopped one, or of another user.
	if err := limit(fd, sent); err != nil {
		return err
	}
	switch err := unix.Connect(fd, name); {
	case errors.Is(err, unix.EAGAIN):
		return errStuck
	case err != nil:
		return errRetry
	}
	if err := checkPeer(fd); err != nil {
		return err
	}
	modules := appendModules(nil, p.Modules)
	b := binary.LittleEndian.AppendUint32(nil, uint32(p.Rank))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(p.packed)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(modules)))
	b = append(append(b, p.packed...), modules...)
	err = transfer(fd, b, sent, func(fd int, b []byte) (int, error) {
		return unix.SendmsgN(fd, b, nil, nil, unix.MSG_NOSIGNAL)
	})
	if err != nil {
		return errRetry
	}
	answer := []byte{0}
	switch err := transfer(fd, answer, end, unix.Read); {
	case err != nil:
		return errRetry
	case answer[0] == answerFailed:
		return errFailed
	}
	return nil
}

// checkPeer fails unless this user has made the other end. Names of abstract sockets belong to nobody.
func checkPeer(fd int) error {
	c, err := unix.GetsockoptUcred(fd, unix.SOL_SOCKET, unix.SO_PEERCRED)
	if err == nil && int(c.Uid) != os.Geteuid() {
		err = unix.EPERM
	}
	return err
}

// limit has the next call on a socket fail with EAGAIN at that time. It fails so itself after it.
func limit(fd int, end time.Time) error {
	left := time.Until(end)
	if left < time.Microsecond { // 0 would be no limit
		return unix.EAGAIN
	}
	t := unix.NsecToTimeval(left.Nanoseconds())
	for _, option := range []int{unix.SO_RCVTIMEO, unix.SO_SNDTIMEO} {
		if err := unix.SetsockoptTimeval(fd, unix.SOL_SOCKET, option, &t); err != nil {
			return err
		}
	}
	return nil
}

// transfer reads or writes all of b, or fails at that time.
func transfer(fd int, b []byte, end time.Time, step func(fd int, b []byte) (int, error)) error {
	for len(b) > 0 {
		if err := limit(fd, end); err != nil {
			return err
		}
		n, err := step(fd, b)
		switch {
		case errors.Is(err, unix.EINTR):
		case err != nil:
			return err
		case n == 0:
			return unix.ECONNRESET
		default:
			b = b[n:]
		}
	}
	return nil
}

// readable waits until somebody connects.
func readable(fd int, wait time.Duration) bool {
	end := time.Now().Add(wait)
	for {
		left := time.Until(end)
		if left < 0 {
			return false
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, int(left.Milliseconds())+1)
		if !errors.Is(err, unix.EINTR) {
			return err == nil && n == 1
		}
	}
}
