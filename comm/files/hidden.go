package files

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"strings"
)

// Uploads that have a name before their commit have one of these, and are hidden from clients.
const (
	hidden    = ".pinwheel-"
	hiddenLen = 32        // hexadecimal digits that follow
	resumable = "-resume" // is the end of those that another connection may go on with
)

// newHidden returns the name of an upload that nobody goes on with.
func newHidden() string {
	var random [hiddenLen / 2]byte
	rand.Read(random[:])
	return hidden + hex.EncodeToString(random[:])
}

// hiddenOf returns the name of the upload of a file that has an ID.
func hiddenOf(base, id string) string {
	of := sha256.Sum256([]byte(id + "\n" + base))
	return hidden + hex.EncodeToString(of[:hiddenLen/2]) + resumable
}

// isHidden tells whether an element of a name is one of these.
func isHidden(e string) bool {
	digits, ok := strings.CutPrefix(e, hidden)
	if !ok || len(digits) < hiddenLen {
		return false
	}
	_, err := hex.DecodeString(digits[:hiddenLen])
	end := digits[hiddenLen:]
	return err == nil && (end == "" || end == resumable)
}
