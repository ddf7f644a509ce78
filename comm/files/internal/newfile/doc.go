// Package newfile makes files that appear whole: they have no name until they are complete, and many of them become
// durable together. One that has a name before it is complete may be continued later.
package newfile
