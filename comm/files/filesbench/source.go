package filesbench

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
)

// Names below the source.
const (
	fileName = "file"
	treeName = "tree"
)

// makeSource makes the file, and a tree of files of 0 to 8 KiB in directories of 100. It returns the bytes of the tree.
func makeSource(dir string, bytes int64, files int) (tree int64, err error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return 0, err
	}
	content := rand.NewChaCha8([32]byte{1}) // what no compression makes smaller
	f, err := os.Create(filepath.Join(dir, fileName))
	if err != nil {
		return 0, err
	}
	_, err = io.CopyN(f, content, bytes)
	if closeErr := f.Close(); err == nil {
		err = closeErr
	}
	if err == nil {
		err = os.Mkdir(filepath.Join(dir, treeName), 0o755)
	}
	size := rand.New(rand.NewPCG(1, 2))
	b := make([]byte, 8<<10)
	for i := 0; i < files && err == nil; i++ {
		in := filepath.Join(dir, treeName, fmt.Sprintf("%04d", i/100))
		if i%100 == 0 {
			if err = os.Mkdir(in, 0o755); err != nil {
				break
			}
		}
		n := size.IntN(len(b))
		_, _ = content.Read(b[:n]) // it never fails
		err = os.WriteFile(filepath.Join(in, fmt.Sprint(i)), b[:n], 0o644)
		tree += int64(n)
	}
	return tree, err
}
