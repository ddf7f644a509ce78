package main

import (
	"errors"
	"fmt"
	"net"
	"strings"
	"syscall"

	"pinwheel/files"
	"pinwheel/vmmc"
)

// asTyped is an address of vmmc as it stands on a command line.
func asTyped(address string) string { return strings.TrimPrefix(address, "tcp:") }

// dialFault says why there is no connection to the server at an address.
func dialFault(address string, err error) error {
	switch {
	case errors.Is(err, syscall.EACCES):
		return fmt.Errorf("%s: %w: does the server belong to another user?", asTyped(address), syscall.EACCES)
	case errors.Is(err, vmmc.ErrIdentity):
		_, why, _ := strings.Cut(err.Error(), vmmc.ErrIdentity.Error()+": ")
		return fmt.Errorf("%s: the server is of another user, or has another token or certificate: %s", asTyped(address), why)
	}
	return callFault(address, err)
}

// callFault names the server by its address if the connection was lost. The error has sockets that nobody has chosen.
func callFault(address string, err error) error {
	if !errors.Is(err, files.ErrPeerGone) {
		return err
	}
	for op := (*net.OpError)(nil); errors.As(err, &op); {
		err = op.Err
	}
	return fmt.Errorf("%s: is pinwheel serve still running there? %w", asTyped(address), err)
}
