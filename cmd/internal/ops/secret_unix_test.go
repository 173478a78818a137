//go:build unix

package ops

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// wantMode checks who may read a file; a group below 0 is any.
func wantMode(t *testing.T, file string, mode fs.FileMode, group int) {
	t.Helper()
	info, err := os.Stat(file)
	if err != nil {
		t.Error(err)
		return
	}
	if has := int(info.Sys().(*syscall.Stat_t).Gid); info.Mode().Perm() != mode || group >= 0 && has != group {
		t.Errorf("%s has mode %o and group %d, want %o and %d", filepath.Base(file), info.Mode().Perm(), has, mode, group)
	}
}

// TestConfigurationIsSecret: files that the first boot and a scan write may have secrets, so that
// only the superuser and the site can read them.
func TestConfigurationIsSecret(t *testing.T) {
	const secret = "site: { name: card }\nclaim: fDtmqbFcp-Bf7i3dkYdKuw\ndevices:\n"
	group := os.Getegid()
	if os.Geteuid() == 0 {
		group = 65533
	}
	for name, before := range map[string]map[string]string{
		"from the card": {"boot/agentsite.yaml": secret + "  room: { driver: sim, model: climate }\n", "etc/agentsite.yaml": secret + "  den: { driver: sim, model: climate }\n"},
		"made anew":     {},
	} {
		t.Run(name, func(t *testing.T) {
			o := flashed(t, before)
			if err := os.Chown(string(o.Folder), -1, group); err != nil {
				t.Fatal(err)
			}
			if _, err := Prepare(t.Context(), o); err != nil {
				t.Fatal(err)
			}
			wantMode(t, o.Config, 0o640, group)
			if len(before) > 0 {
				wantMode(t, o.Config+".old", 0o600, -1)
				wantMode(t, o.Config+".taken", 0o600, -1)
			}
			text, err := os.ReadFile(o.Config)
			if err != nil {
				t.Fatal(err)
			}
			if err := (&ScanResult{File: o.Config, text: text, drivers: o.Drivers}).Write(); err != nil {
				t.Fatal(err)
			}
			wantMode(t, o.Config, 0o640, group)
		})
	}
}
