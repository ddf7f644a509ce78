// Package uffd is write tracking by userfaultfd(2) in asynchronous mode, with PAGEMAP_SCAN of
// proc_pid_pagemap(5), both of Linux 6.7: a store into tracked memory costs a page fault that the kernel
// resolves by itself, and nobody waits for a reader.
//
// # Caveats
//
// A mapping belongs to one userfaultfd: Register fails with EBUSY if it has another.
package uffd
