package main

import (
	"pinwheel/files/transfer"
	"pinwheel/internal/command"
)

// checkEnds finds out that the end of a copy that should be of this machine is at a server. other is the command that
// copies the other way.
func checkEnds(remote, local, other string) error {
	if _, _, err := transfer.ParseRemote(local); err != nil {
		return nil
	}
	if _, _, err := transfer.ParseRemote(remote); err != nil {
		return command.Usagef("%s is at a server, and %s is not: that is pinwheel %s (a file here that is called so is ./%s)",
			local, remote, other, local)
	}
	return command.Usagef("%s and %s are both at servers: get it from one, then put it to the other", remote, local)
}
