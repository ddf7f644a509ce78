// Package place names directories, so that a copy sees that it goes into what it copies.
package place

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"os"
	"sync"
)

// bootID is the same for all processes under a kernel, also in containers (random(4)).
var bootID = sync.OnceValue(func() []byte {
	id, err := os.ReadFile("/proc/sys/kernel/random/boot_id")
	if err != nil {
		return nil
	}
	return bytes.TrimSpace(id)
})

// Of returns the name of a directory by its device and inode, of stat(2): another one has another name, also if it is
// of another machine. It says nothing else. It is empty where the machine can't be told from others.
func Of(dev, ino uint64) string {
	id := bootID()
	if id == nil {
		return ""
	}
	b := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, dev), ino)
	sum := sha256.Sum256(append(b, id...))
	return hex.EncodeToString(sum[:16])
}
