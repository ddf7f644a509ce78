// Package command is what Pinwheel's commands have in common: one parser, one
// way to complain and to end, a manual page and shell completion from the same
// declarations.
//
// A fault is one line on standard error, that says what is wrong, of which
// argument or file, and where possible what to do. Exit status 2 is for the
// arguments, 1 for everything else that failed.
package command
