// Package record collects the traces that the ranks of a job write, one file
// each, and puts them into one.
//
// A Run is made before the job starts, so that a file in the way is found
// before hours have passed, and is finished after it. Files of a job that was
// killed are torn; what is whole in them is used.
//
// # Caveats
//
// The files must be seen from the node where the job was started.
package record
