// Package transfer gets and puts whole files and trees between a server of package files and the local disk.
//
// A file is written beside its place, as .NAME.KEY.partial. It is verified, made durable and renamed: nobody ever finds
// half of one under its name, whatever is killed or full. Names that a server sends are single elements below the
// destination, which is an os.Root: neither they nor symbolic links that are there lead out of it.
//
// # Resume
//
// The key of a partial file is a hash of the source's name, size and ETag. So a copy goes on with what an earlier one
// left only if the source is still the same, and nothing else has to be remembered. A partial file is written from its
// beginning to its end: its size says how much is there. The checksum of the whole file is verified in the end, also
// over what was there; if it is wrong, the copy begins anew, once. Partial files of other versions are removed. A file
// that is there with the size and the modification time of the source is left alone. A copy without resume removes its
// partial files when it fails, and writes over those that it finds.
//
// An upload goes on in the same way with what the server has kept under the name, the size and the modification time of
// the local file.
//
// With Options.Retry, a copy that has lost its server connects again and goes on so. What was copied before counts as
// unchanged then, and is counted once in the Result.
//
// # Streams
//
// GetTo and PutFrom copy between a file of a server and an io.Writer or io.Reader, as standard output and input are.
// What was written can't be taken back: it is verified in the end.
//
// # Trees
//
// Files that are there with the size and the modification time of their source are left alone, also without resume;
// with Options.Compare, after a look at their checksums. Small files go many at a time, have no name at all until they
// are complete where the file system can do that (O_TMPFILE), and become durable many at a time. A file that can't be
// copied doesn't keep the others from it; a full disk or a lost connection ends the copy. Symbolic links, devices,
// sockets, FIFOs and partial files are not copied. Files and directories get the permissions of their source, without
// set-user-ID and the like and within the umask, and its modification time.
//
// # Caveats
//
// A source that changes while it is copied is copied again, three times at most. One that only grows is copied as of its
// start, unless Options.Strict is set. Blocks of zeros become holes.
package transfer
