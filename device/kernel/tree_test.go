package kernel

import (
	"context"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"agentsite/device"
	"agentsite/device/sysfs"
)

// files are a machine's files by path; a content that begins with -> is a link. Each test
// writes them, because IIO's paths have a colon, which Windows and Go modules refuse.
type files map[string]string

func (f files) write(t testing.TB) sysfs.Root {
	t.Helper()
	root := sysfs.Root(t.TempDir())
	f.writeInto(t, root)
	return root
}

// writeInto returns the folder of the last file.
func (f files) writeInto(t testing.TB, root sysfs.Root) (folder string) {
	t.Helper()
	for path, content := range f {
		folder = filepath.Dir(path) + "/"
		path = root.Path(path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Skipf("this system cannot have such a folder: %v", err)
		}
		var err error
		if to, ok := strings.CutPrefix(content, "->"); ok {
			err = os.Symlink(to, path)
		} else {
			err = os.WriteFile(path, []byte(content), 0o644)
		}
		if err != nil {
			t.Skipf("this system cannot have a file of that name: %v", err)
		}
	}
	return folder
}

// groupOfTree returns the group of the tree's files.
func groupOfTree(t testing.TB, root sysfs.Root) int {
	t.Helper()
	info, err := os.Stat(root.Path())
	if err != nil {
		t.Fatal(err)
	}
	return groupOf(info)
}

// in puts files below a folder.
func in(folder string, f files) files {
	all := files{}
	for path, content := range f {
		all[folder+path] = content
	}
	return all
}

func (f files) with(more ...files) files {
	all := maps.Clone(f)
	for _, m := range more {
		maps.Copy(all, m)
	}
	return all
}

func setFile(tb testing.TB, t sysfs.Root, path, content string) {
	tb.Helper()
	if err := os.WriteFile(t.Path(path), []byte(content), 0o644); err != nil {
		tb.Fatal(err)
	}
}

func rename(tb testing.TB, t sysfs.Root, from, to string) {
	tb.Helper()
	if err := os.Rename(t.Path(from), t.Path(to)); err != nil {
		tb.Fatal(err)
	}
}

// spoil replaces a file by a folder: reading it fails like a bus that does not respond.
func spoil(tb testing.TB, t sysfs.Root, path string) {
	tb.Helper()
	if err := os.Remove(t.Path(path)); err != nil {
		tb.Fatal(err)
	}
	if err := os.Mkdir(t.Path(path), 0o755); err != nil {
		tb.Fatal(err)
	}
}

type opener interface {
	Open(context.Context) (device.Device, error)
}

func open(t testing.TB, c opener) device.Device {
	t.Helper()
	dev, err := c.Open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { dev.Close() })
	return dev
}

func sample(t testing.TB, dev device.Device) map[string]device.Reading {
	t.Helper()
	readings, err := dev.(device.Sensor).Sample(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]device.Reading)
	for _, r := range readings {
		all[r.Point] = r
	}
	return all
}

// reads checks the device's points, such as "temperature Cel": 21.5; nil is Bad.
func reads(t *testing.T, dev device.Device, want map[string]any) {
	t.Helper()
	got := sample(t, dev)
	for key, value := range want {
		name, unit, _ := strings.Cut(key, " ")
		r, ok := got[name]
		p, _ := dev.Describe().Point(name)
		delete(got, name)
		switch {
		case !ok:
			t.Errorf("%s is not read", name)
		case value == nil && (r.Quality != device.Bad || r.Why == ""):
			t.Errorf("%s = %v (%s), want it bad", name, r.Value, r.Quality)
		case value != nil && (r.Quality != device.Good || r.Value.Any() != value):
			t.Errorf("%s = %v (%s %s), want %v", name, r.Value, r.Quality, r.Why, value)
		case p.Unit != unit:
			t.Errorf("%s has the unit %q, want %q", name, p.Unit, unit)
		}
	}
	for name := range got {
		t.Errorf("%s was not expected", name)
	}
}

// offline checks that err is an Offline fault with that text.
func offline(t *testing.T, err error, text string) {
	t.Helper()
	faulted(t, err, device.Offline, text)
}

func faulted(t *testing.T, err error, kind device.FaultKind, text string) {
	t.Helper()
	if err == nil || device.AsFault(err).Kind != kind || !strings.Contains(err.Error(), text) {
		t.Errorf("got %v, want an %s fault with %q", err, kind, text)
	}
}
