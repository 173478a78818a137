//go:build e2e && linux

package history

import (
	"bufio"
	"context"
	"log/slog"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"agentsite/device"

	"github.com/hanwen/go-fuse/v2/fs"
	"github.com/hanwen/go-fuse/v2/fuse"
)

// card is a memory card as a file system of one file, with a loop device over it. It keeps every
// write, and every flush that the kernel requests.
type card struct {
	fs.Inode
	mu    sync.Mutex
	image []byte
	log   []write
}

// write is a write of a sector or more, a flush if it has no data, or, with a count, the number of
// records that the program reported as stored by then.
type write struct {
	at   int64
	data []byte
	said int
}

func (c *card) Getattr(_ context.Context, _ fs.FileHandle, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(len(c.image))
	return 0
}

func (c *card) Setattr(_ context.Context, _ fs.FileHandle, _ *fuse.SetAttrIn, out *fuse.AttrOut) syscall.Errno {
	out.Mode, out.Size = 0o600, uint64(len(c.image))
	return 0
}

func (c *card) Open(context.Context, uint32) (fs.FileHandle, uint32, syscall.Errno) { return nil, 0, 0 }

func (c *card) Read(_ context.Context, _ fs.FileHandle, dest []byte, at int64) (fuse.ReadResult, syscall.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return fuse.ReadResultData(slices.Clone(c.image[min(at, int64(len(c.image))):min(at+int64(len(dest)), int64(len(c.image)))])), 0
}

func (c *card) Write(_ context.Context, _ fs.FileHandle, data []byte, at int64) (uint32, syscall.Errno) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at+int64(len(data)) > int64(len(c.image)) {
		return 0, syscall.ENOSPC
	}
	copy(c.image[at:], data)
	c.log = append(c.log, write{at: at, data: slices.Clone(data)})
	return uint32(len(data)), 0
}

func (c *card) Fsync(context.Context, fs.FileHandle, uint32) syscall.Errno {
	c.add(write{})
	return 0
}

func (c *card) add(w write) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.log = append(c.log, w)
}

// newCard returns a card with ext4 on it, and the file to mount.
func newCard(t testing.TB) (c *card, disk string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	folder := t.TempDir()
	c = &card{image: make([]byte, 24<<20)}
	root := &fs.Inode{}
	server, err := fs.Mount(folder, root, &fs.Options{
		MountOptions: fuse.MountOptions{DirectMountStrict: true, MaxWrite: 1 << 17},
		OnAdd: func(ctx context.Context) {
			root.AddChild("disk", root.NewPersistentInode(ctx, c, fs.StableAttr{}), false)
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { server.Unmount() })
	disk = filepath.Join(folder, "disk")
	command(t, "mke2fs", "-q", "-t", "ext4", "-b", "4096", "-F", disk) // blocks as on a large card
	return c, disk
}

// command runs a program of the system.
func command(t testing.TB, name string, args ...string) string {
	t.Helper()
	out, err := exec.Command(name, args...).CombinedOutput()
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, out)
	}
	return strings.TrimSpace(string(out))
}

// mounted mounts an image in a folder while use runs.
func mounted(t testing.TB, image, folder string, use func()) {
	t.Helper()
	loop := command(t, "losetup", "--find", "--show", image)
	defer command(t, "losetup", "--detach", loop)
	command(t, "mount", "-t", "ext4", loop, folder)
	defer command(t, "umount", folder)
	use()
}

// record runs a process that records on the card, until it has reported a number of times, and
// kills it.
func (c *card) record(t testing.TB, folder string, times int) {
	cmd := exec.CommandContext(t.Context(), os.Args[0])
	cmd.Env = append(os.Environ(), childFolder+"="+filepath.Join(folder, "history"))
	out, err := cmd.StdoutPipe()
	if err == nil {
		err = cmd.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	lines := bufio.NewScanner(out)
	for ; times > 0 && lines.Scan(); times-- {
		if n, err := strconv.Atoi(lines.Text()[len("written "):]); err == nil {
			c.add(write{said: n})
		}
	}
	cmd.Process.Kill()
	for lines.Scan() {
	}
	cmd.Wait()
	if times > 0 {
		t.Fatal("it ended by itself")
	}
}

// TestPowerCutsOnExt4 cuts the power of a memory card with ext4 at random writes. Writes that were
// not flushed may be there, in whole or in part, or not. After the kernel has mounted it again, the
// history has all records that it reported as written, and no others.
func TestPowerCutsOnExt4(t *testing.T) {
	c, disk := newCard(t)
	folder, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	began := 0
	mounted(t, disk, folder, func() {
		command(t, "sync", "-f", folder)
		began = len(c.log)
		for range 4 {
			c.record(t, folder, workload(60, 300))
		}
	})

	// The cuts, in order; base holds the writes that are surely stored before each.
	rng := rand.New(rand.NewPCG(uint64(len(c.log)), 1))
	var cuts []int
	for range workload(20, 200) {
		cuts = append(cuts, began+rng.IntN(len(c.log)-began))
	}
	slices.Sort(cuts)
	base, stored, said := make([]byte, len(c.image)), 0, 0
	apply := func(to []byte, all []write) {
		for _, w := range all {
			copy(to[w.at:], w.data)
			said = max(said, w.said)
		}
	}
	flushes, lost := 0, 0
	for _, w := range c.log {
		if w.data == nil && w.said == 0 {
			flushes++
		}
	}
	for _, cut := range cuts {
		flushed := stored
		for i := stored; i < cut; i++ {
			if c.log[i].data == nil && c.log[i].said == 0 {
				flushed = i
			}
		}
		apply(base, c.log[stored:flushed])
		stored = flushed
		now, sure := slices.Clone(base), said
		keep := rng.IntN(5) // of four writes
		for _, w := range c.log[stored:cut] {
			sure = max(sure, w.said)
			switch {
			case w.data == nil:
			case rng.IntN(4) < keep:
				copy(now[w.at:], w.data)
			case rng.IntN(2) == 0: // a part of its sectors
				sectors := len(w.data) / 512
				copy(now[w.at:], w.data[:512*rng.IntN(sectors+1)])
			default:
				lost++
			}
		}
		if err := os.WriteFile(image, now, 0o600); err != nil {
			t.Fatal(err)
		}
		mounted(t, image, folder, func() { afterCut(t, filepath.Join(folder, "history"), sure, cut) })
	}
	t.Logf("%d cuts in %d writes and flushes, of which %d flushes; %d writes were lost in whole; %d readings at the end", len(cuts), len(c.log), flushes, lost, said)
}

// afterCut checks what is left.
func afterCut(t *testing.T, folder string, sure, cut int) {
	t.Helper()
	if _, err := os.Stat(folder); err != nil && sure == 0 {
		return
	}
	h := New(map[string]device.Point{"a/t": {Kind: device.KindMeasurement}})
	if err := h.Open(folder, Options{}); err != nil {
		t.Fatal(err)
	}
	got := values(h, "a/t")
	if len(got) < sure {
		t.Errorf("after write %d, %d readings are left of %d", cut, len(got), sure)
	}
	for i, v := range got {
		if v != float64(i) {
			t.Fatalf("after write %d, reading %d is %v", cut, i, v)
		}
	}
	for tier := range imported {
		if n := total(h, "a/t", tier); n != len(got) {
			t.Errorf("after write %d, %d readings are in %s, want %d", cut, n, tierNames[tier], len(got))
		}
	}
}

// TestDayOnExt4 counts what reaches a card of ten readings a second over a day, written once a
// minute: the blocks, and ext4's own.
func TestDayOnExt4(t *testing.T) {
	c, disk := newCard(t)
	path, written := t.TempDir(), 0
	mounted(t, disk, path, func() {
		command(t, "sync", "-f", path)
		began := len(c.log)
		h, _ := filled(t, folder(filepath.Join(path, "history")), 10, time.Second, day)
		if err := h.flush(true); err != nil {
			t.Fatal(err)
		}
		command(t, "sync", "-f", path)
		for _, w := range c.log[began:] {
			written += len(w.data)
		}
		t.Logf("%d bytes written, %d kept", written, size(h))
		if kept := size(h); kept > 3e6 {
			t.Errorf("%d bytes are kept", kept)
		}
	})
	if written > 32e6 {
		t.Errorf("%d bytes reached the card", written)
	}
}

// TestDisksOnExt4: on a full and on a read-only file system a write fails, says so once, and
// loses nothing; afterwards what waited is written.
func TestDisksOnExt4(t *testing.T) {
	if os.Getuid() != 0 {
		t.Skip("only root mounts file systems")
	}
	folder, image := t.TempDir(), filepath.Join(t.TempDir(), "image")
	if err := os.WriteFile(image, make([]byte, 4<<20), 0o600); err != nil {
		t.Fatal(err)
	}
	command(t, "mke2fs", "-q", "-t", "ext4", "-F", image)
	mounted(t, image, folder, func() {
		path, filler := filepath.Join(folder, "history"), filepath.Join(folder, "filler")
		var log strings.Builder
		before := slog.Default()
		slog.SetDefault(slog.New(slog.NewTextHandler(&log, nil)))
		defer slog.SetDefault(before)
		h := New(oneMeasurement)
		if err := h.Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		n := 0
		record := func(fails bool) {
			t.Helper()
			for range 5 {
				for range 50 {
					h.Record(number(float64(n), time.Now()))
					n++
				}
				if err := h.flush(false); err != nil != fails {
					t.Errorf("after %d readings: %v", n, err)
				}
			}
			if got := len(values(h, "a/t")); got != n {
				t.Errorf("%d readings of %d", got, n)
			}
		}
		record(false)
		command(t, "mount", "-o", "remount,ro", folder)
		record(true)
		command(t, "mount", "-o", "remount,rw", folder)
		record(false)
		for size := 1 << 20; size > 0; size /= 2 { // until nothing fits any more
			for i := 0; os.WriteFile(filler+strconv.Itoa(size)+"-"+strconv.Itoa(i), make([]byte, size), 0o600) == nil; i++ {
			}
		}
		for h.flush(false) == nil { // what the last page has room for
			h.Record(number(float64(n), time.Now()))
			n++
		}
		record(true)
		fillers, _ := filepath.Glob(filler + "*")
		for _, f := range fillers {
			os.Remove(f)
		}
		record(false)
		if failed, again := strings.Count(log.String(), "history cannot be written"), strings.Count(log.String(), "history is written again"); failed != 2 || again != 2 {
			t.Errorf("it said so %d and %d times:\n%s", failed, again, log.String())
		}
		again := New(oneMeasurement)
		if err := again.Open(path, Options{}); err != nil {
			t.Fatal(err)
		}
		if got := len(values(again, "a/t")); got != n {
			t.Errorf("%d readings of %d are on the disk", got, n)
		}
	})
}
