// Package doctor finds out what Pinwheel can do on this machine, what it will
// use and why, and what is missing, in a form that fits a support ticket.
//
// Every question is put to the package that will do the work (its Probe, Open
// or Limits); this package only asks, collects and words the answers. Files of
// /proc, /sys and /etc are read through an fs.FS.
//
// Ownership: a Machine is what is asked; This returns the real one. Reports are
// plain values.
//
// # Caveats
//
// The answers hold for this process: a batch job may have other limits and
// another cpuset than a login shell. Looking for an idle core takes part of a
// second, and opening a watch of mappings about as long.
package doctor
