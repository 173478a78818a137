package config

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"testing"

	"agentsite/device"
	"agentsite/device/driver"
)

// keyed is a driver whose devices need a key.
type keyed struct {
	KeyFile driver.File            `json:"key_file,omitempty"`
	More    map[string]driver.File `json:"more,omitempty"`
}

func (*keyed) Open(context.Context) (device.Device, error) { return nil, errors.ErrUnsupported }

// TestFiles: a file is beside the configuration, also in the plan, which stands elsewhere. Another content makes
// another device.
func TestFiles(t *testing.T) {
	folder := t.TempDir()
	drivers := []driver.Driver{{Name: "keyed", Config: func() driver.Config { return new(keyed) }}}
	parse := func(name, text string) *Site {
		t.Helper()
		s, err := Parse(name, []byte(text), drivers)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	text := "site: { name: a }\ndevices:\n  k: { driver: keyed, key_file: k.key, more: { a: " + filepath.ToSlash(folder) + "/b.key } }\n"
	load := func() Device { t.Helper(); return parse(filepath.Join(folder, "agentsite.yaml"), text).Devices[0] }
	missing := load()
	if d := missing.FileDoubts(); len(d) != 2 || !errors.Is(d[0], fs.ErrNotExist) || d[0].(*Error).Line != 3 || d[0].(*Error).Column != 33 {
		t.Errorf("%v", d)
	}
	write := func(name, content string, mode fs.FileMode) {
		t.Helper()
		name = filepath.Join(folder, name)
		if err := errors.Join(os.WriteFile(name, []byte(content), mode), os.Chmod(name, mode)); err != nil {
			t.Fatal(err)
		}
	}
	write("k.key", "one\n", 0o600)
	write("b.key", "two", 0o600)
	one := load()
	if got := one.Config.(*keyed).KeyFile; got != driver.File(filepath.Join(folder, "k.key")) || len(one.FileDoubts()) != 0 {
		t.Errorf("%s, %v", got, one.FileDoubts())
	}
	plan := Plan(&Site{Name: "a"}, []Device{one})
	again := parse(filepath.Join(t.TempDir(), "plan"), string(plan)).Devices[0]
	if secret, err := again.Config.(*keyed).KeyFile.Secret(); secret != "one" || err != nil || !again.SameDriver(one) || !again.Same(one) {
		t.Errorf("%q, %v in\n%s", secret, err, plan)
	}
	if one.Same(missing) || one.SameDriver(missing) || !load().Same(one) {
		t.Error("the content is not compared")
	}
	write("b.key", "three", 0o600)
	if other := load(); other.Same(one) || other.SameDriver(one) {
		t.Error("a file in a map is not compared")
	}
	if runtime.GOOS != "windows" {
		write("k.key", "one", 0o644)
		if d := load().FileDoubts(); len(d) != 1 {
			t.Errorf("others can read it: %v", d)
		}
	}
}

// TestFileNames: what is no name of a file is a mistake.
func TestFileNames(t *testing.T) {
	drivers := []driver.Driver{{Name: "keyed", Config: func() driver.Config { return new(keyed) }}}
	for _, name := range []string{`""`, `"a\e[31mb"`, `"a\nb"`, `[a]`, `{}`} {
		if _, err := Parse("a.yaml", []byte("site: { name: a }\ndevices: { k: { driver: keyed, key_file: "+name+" } }\n"), drivers); err == nil {
			t.Errorf("%s is taken", name)
		}
	}
}
