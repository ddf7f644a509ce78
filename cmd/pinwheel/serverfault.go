package main

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"syscall"

	"pinwheel/comm/files"
	"pinwheel/comm/files/transfer"
	"pinwheel/comm/vmmc"
)

// asTyped is an address of vmmc as it stands on a command line.
func asTyped(address string) string { return strings.TrimPrefix(address, "tcp:") }

// dialFault says why there is no connection to the server at an address.
func (f *clientFlags) dialFault(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %w: does the server belong to another user?", asTyped(address), syscall.EACCES)
	case errors.Is(err, syscall.ECONNREFUSED), errors.Is(err, syscall.ENOENT) && strings.HasPrefix(address, "unix:"):
		return fmt.Errorf("%s: nothing listens there: is pinwheel serve running? (get and put wait for it with --retry 10s)",
			asTyped(address))
	case !errors.Is(err, vmmc.ErrIdentity):
		return callFault(address, err)
	}
	_, why, _ := strings.Cut(err.Error(), vmmc.ErrIdentity.Error()+": ")
	id := &f.End.Identity
	switch {
	case !strings.HasPrefix(address, "tcp:"): // where the kernel says who that is
		return fmt.Errorf("%s: the server is of another user: %s", asTyped(address), why)
	case !id.given():
		return fmt.Errorf("%s: the server wants a token or a certificate, or is of another user: give its token with "+
			"--token-file, or --certificate", asTyped(address))
	case id.TokenFile != "":
		return fmt.Errorf("%s: the server does not have the token in %s: it has another one, a certificate, or none",
			asTyped(address), id.TokenFile)
	}
	return fmt.Errorf("%s: the server has another certificate: %s", asTyped(address), why)
}

// callFault names the server by its address if the connection was lost, or RDMA that is insisted on. The error of a
// connection has sockets that nobody has chosen. What was joined to it, such as a full disk, stays.
func callFault(address string, err error) error {
	if !transfer.Lost(err) {
		return err
	}
	if all := joinedErrors(err); len(all) > 1 {
		for i := range all {
			all[i] = callFault(address, all[i])
		}
		return errors.Join(all...)
	}
	if errors.Is(err, files.ErrNoRDMA) {
		return fmt.Errorf("%s: %w: see pinwheel doctor at both ends, or let both take --transport auto", asTyped(address), err)
	}
	for op := (*net.OpError)(nil); errors.As(err, &op) && op.Err != nil; {
		err = op.Err
	}
	return fmt.Errorf("%s: is pinwheel serve still running there? %w", asTyped(address), err)
}

// joinedErrors returns the errors that errors.Join has made one of, also if that was wrapped.
func joinedErrors(err error) []error {
	switch e := err.(type) {
	case interface{ Unwrap() error }:
		return joinedErrors(e.Unwrap())
	case interface{ Unwrap() []error }:
		all := e.Unwrap()
		if one := errors.Join(all...); one != nil && one.Error() == err.Error() { // not of several %w
			return slices.Clone(all)
		}
	}
	return nil
}
