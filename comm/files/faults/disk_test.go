package faults

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"pinwheel/comm/files/transfer"
	"pinwheel/internal/testwait"
)

// disk is a file system on a device that can be made to fail, by dm-flakey of the kernel's device mapper.
type disk struct {
	t       *testing.T
	dir     string
	loop    string
	sectors string
}

const flaky = "pinwheel-flaky"

// newDisk makes an empty one. It has no journal, with which ext4 would be read-only after the first error.
func newDisk(t *testing.T) *disk {
	t.Helper()
	shell(t, "modprobe -a loop dm-flakey ext4")
	d := &disk{t: t, dir: t.TempDir()}
	image := filepath.Join(t.TempDir(), "image")
	d.loop = shell(t, "truncate -s 64M "+image+" && losetup --find --show "+image)
	later(t, "losetup -d "+d.loop)
	d.sectors = shell(t, "blockdev --getsz "+d.loop)
	shell(t, fmt.Sprintf("DM_DISABLE_UDEV=1 dmsetup create %s --table '0 %s linear %s 0'", flaky, d.sectors, d.loop))
	later(t, "DM_DISABLE_UDEV=1 dmsetup remove --force "+flaky)
	shell(t, "mkfs.ext4 -q -O ^has_journal /dev/mapper/"+flaky+" && mount -o errors=continue /dev/mapper/"+flaky+" "+d.dir)
	later(t, "umount "+d.dir)
	return d
}

// fail has the disk fail: feature is error_reads or error_writes of dm-flakey.
func (d *disk) fail(feature string) {
	d.t.Helper()
	d.table(fmt.Sprintf("0 %s flakey %s 0 0 3600 1 %s", d.sectors, d.loop, feature))
}

func (d *disk) mend() {
	d.t.Helper()
	d.table(fmt.Sprintf("0 %s linear %s 0", d.sectors, d.loop))
}

func (d *disk) table(line string) {
	d.t.Helper()
	shell(d.t, fmt.Sprintf("DM_DISABLE_UDEV=1 dmsetup suspend --nolockfs %[1]s && "+
		"DM_DISABLE_UDEV=1 dmsetup reload %[1]s --table '%[2]s' && "+
		"DM_DISABLE_UDEV=1 dmsetup resume %[1]s", flaky, line))
}

// unreadable tells whether an error says that the disk of the server can't read f.
func unreadable(err error) bool {
	return errors.Is(err, syscall.EIO) && err.Error() == "read f: input/output error"
}

func TestReadsThatFailAreToldWithWhatHasArrived(t *testing.T) {
	inGuests(t, "1")
	testwait.Bound(t)
	for _, size := range []int{100 << 10, 4 << 20} { // copied, and mapped
		t.Run(fmt.Sprint(size), func(t *testing.T) {
			d := newDisk(t)
			want := content(size)
			write(t, filepath.Join(d.dir, "f"), want)
			write(t, filepath.Join(d.dir, "healthy"), want)
			shell(t, "sync && echo 1 > /proc/sys/vm/drop_caches")
			s, at := serve(t, d.dir, "tcp:127.0.0.1:0")
			c := dial(t, open(t, "client", "tcp:127.0.0.1:0"), at)
			awaitRDMA(t, c, "healthy", size) // which stays in the page cache
			d.fail("error_reads")
			f, err := c.Open(t.Context(), "f")
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			n, err := f.CopyRange(t.Context(), &got, 0, int64(size))
			if !unreadable(err) || n >= int64(size) {
				t.Errorf("%d bytes by %s, %v", n, c.Transport(), err)
			}
			if n != int64(got.Len()) || !bytes.Equal(got.Bytes(), want[:got.Len()]) {
				t.Errorf("%d bytes were told, and %d have arrived, or others", n, got.Len())
			}
			local := t.TempDir()
			if _, err := transfer.Get(t.Context(), c, "f", filepath.Join(local, "f"), transfer.Options{}); !unreadable(err) {
				t.Errorf("a get: %v", err)
			}
			if left := partials(t, local); len(left) > 0 {
				t.Errorf("left: %q", left)
			}
			if _, err := transfer.Get(t.Context(), c, "healthy", filepath.Join(local, "healthy"), transfer.Options{}); err != nil {
				t.Errorf("another file: %v", err)
			}
			same(t, filepath.Join(local, "healthy"), want)
			d.mend()
			if _, err := transfer.Get(t.Context(), c, "f", filepath.Join(local, "f"), transfer.Options{}); err != nil {
				t.Errorf("after it was mended: %v", err)
			}
			same(t, filepath.Join(local, "f"), want)
			if st := s.Stats(); st.Errors == 0 {
				t.Errorf("%+v", st)
			}
		})
	}
}

func TestWritesThatFailLeaveNothing(t *testing.T) {
	inGuests(t, "1")
	testwait.Bound(t)
	d := newDisk(t)
	_, at := serve(t, d.dir, "tcp:127.0.0.1:0")
	c := dial(t, open(t, "client", "tcp:127.0.0.1:0"), at)
	local := filepath.Join(t.TempDir(), "f")
	want := content(4 << 20)
	write(t, local, want)
	put := func() error {
		_, err := transfer.Put(context.Background(), c, local, "f", transfer.Options{})
		return err
	}
	d.fail("error_writes")
	if err := put(); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	if _, err := os.Stat(filepath.Join(d.dir, "f")); err == nil {
		t.Error("a file has appeared that could not be written")
	}
	d.mend()
	if left := partials(t, d.dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if err := put(); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
	same(t, filepath.Join(d.dir, "f"), want)
}

func TestGetsToADiskThatFailsLeaveNothing(t *testing.T) {
	inGuests(t, "1")
	testwait.Bound(t)
	d := newDisk(t)
	there := t.TempDir()
	want := content(4 << 20)
	write(t, filepath.Join(there, "f"), want)
	_, at := serve(t, there, "tcp:127.0.0.1:0")
	c := dial(t, open(t, "client", "tcp:127.0.0.1:0"), at)
	local := filepath.Join(d.dir, "f")
	write(t, local, []byte("old"))
	shell(t, "sync")
	d.fail("error_writes")
	if _, err := transfer.Get(t.Context(), c, "f", local, transfer.Options{}); !errors.Is(err, syscall.EIO) {
		t.Errorf("%v", err)
	}
	d.mend()
	same(t, local, []byte("old"))
	if left := partials(t, d.dir); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
	if _, err := transfer.Get(t.Context(), c, "f", local, transfer.Options{}); err != nil {
		t.Errorf("after it was mended: %v", err)
	}
	same(t, local, want)
}
