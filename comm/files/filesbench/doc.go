// Package filesbench measures what pinwheel serve and get cost on this machine, beside plain sendfile(2), nginx with
// curl, and rsync, where these are installed.
//
// Both ends are processes, as users have them. A file goes from the page cache into a file of the same directory, so
// that a disk matters as little as it can: give a directory on tmpfs. Every way is measured once in each round, and
// each round has all of them. The processor time is that of client and server, with that of the kernel for them.
package filesbench
