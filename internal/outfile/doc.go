// Package outfile writes the files that Pinwheel's commands, traces and
// reports are, so that nobody ever finds half of one.
//
// A regular file is written beside its place, as NAME.NUMBER.partial, made
// durable and renamed: a file that was there is replaced whole or stays as it
// is, whether the disk is full, the program fails or the machine does. It keeps
// its mode and, where that is permitted, its owner. A symbolic link is followed
// to its end, also where nothing is there yet. Directories that are missing are
// made. What is no regular file is written to as it is: devices, FIFOs, and the
// descriptors of this process under /dev/stdout and /proc/self/fd. The name -
// is standard output.
//
// # Caveats
//
// A hard link is parted from the file's other names, as by every program that
// renames. Where a file can be written but not replaced, since it is a mount of
// its own or its directory is closed, it is overwritten when the new content is
// complete: a crash in that moment leaves a mixture, a full disk doesn't.
// SIGKILL leaves the partial file. Other signals leave nothing in a command
// that has called RemoveOnSignals; a library must not call it.
package outfile
