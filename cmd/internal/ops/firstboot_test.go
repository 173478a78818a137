package ops

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"agentsite/device/board/boardtest"
	"agentsite/node/access"
	"agentsite/node/config"
	"agentsite/node/devices"
	"agentsite/node/identity"
	"agentsite/node/state"

	"periph.io/x/conn/v3/i2c"
)

const roomYAML = "site: { name: card }\ndevices:\n  room: { driver: sim, model: climate }\n"

// flashed is a board with a boot partition, and nothing wired to it.
func flashed(t *testing.T, files map[string]string) PrepareOptions {
	t.Helper()
	root := t.TempDir()
	for _, dir := range []string{"boot", "etc", "data", "proc"} {
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(root, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return PrepareOptions{
		Config: filepath.Join(root, "etc/agentsite.yaml"), Folder: state.Folder(filepath.Join(root, "data")), Boot: filepath.Join(root, "boot"),
		Drivers: allDrivers(), Group: "0", Root: root, board: boardtest.Machine{Root: root}.Board(),
	}
}

// files are those of a folder, and what they say.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := make(map[string]string)
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// TestFirstBootCut ends a first boot after each file that it changes, as a loss of power does, and
// starts again. The result is always the same, and the configuration is intact at every moment.
func TestFirstBootCut(t *testing.T) {
	before := map[string]string{"boot/agentsite.yaml": roomYAML, "etc/agentsite.yaml": "site: { name: before }\n", "etc/agentsite.yaml.taken": "older", "boot/agentsite-errors.txt": "older"}
	whole := flashed(t, before)
	if _, err := Prepare(t.Context(), whole); err != nil {
		t.Fatal(err)
	}
	after := files(t, whole.Root)
	if after["etc/agentsite.yaml"] != roomYAML || after["etc/agentsite.yaml.old"] != before["etc/agentsite.yaml"] {
		t.Fatalf("%q", after)
	}
	// The files change in the code's order. A cut can leave any set of changed files, and half a
	// file beside an unchanged one.
	order := []string{"etc/agentsite.yaml.old", "etc/agentsite.yaml", "etc/agentsite.yaml.taken"}
	for done := range len(order) + 1 {
		o := flashed(t, before)
		for i, name := range order {
			if i < done {
				os.WriteFile(filepath.Join(o.Root, name), []byte(after[name]), 0o644)
			} else {
				os.WriteFile(filepath.Join(o.Root, name+".new"), []byte("half"), 0o644)
				break
			}
		}
		if _, err := Prepare(t.Context(), o); err != nil {
			t.Errorf("after %d: %v", done, err)
		}
		if got := files(t, o.Root); !maps.Equal(got, after) {
			t.Errorf("after %d: %q, want %q", done, got, after)
		}
		if did, err := Prepare(t.Context(), o); did != nil || err != nil {
			t.Errorf("after %d, once more: %v %v", done, did, err)
		}
	}
}

// TestFirstBootAwry: with a malformed boot partition the configuration stays, the problem is
// reported, and the rest is done.
func TestFirstBootAwry(t *testing.T) {
	for name, tt := range map[string]struct {
		prepare func(t *testing.T, o PrepareOptions)
		says    string
	}{
		"a folder of that name": {func(t *testing.T, o PrepareOptions) {
			os.MkdirAll(filepath.Join(o.Boot, "agentsite.yaml/x"), 0o755)
		}, "regular file"},
		"a link": {func(t *testing.T, o PrepareOptions) {
			if err := os.Symlink("/etc/hostname", filepath.Join(o.Boot, "agentsite.yaml")); err != nil {
				t.Skip(err)
			}
		}, "regular file"},
		"a film": {func(t *testing.T, o PrepareOptions) {
			f, err := os.Create(filepath.Join(o.Boot, "agentsite.yaml"))
			if err := errors.Join(err, f.Truncate(config.MaxBytes+1), f.Close()); err != nil {
				t.Fatal(err)
			}
		}, "is longer than"},
		"an empty file": {func(t *testing.T, o PrepareOptions) {
			os.WriteFile(filepath.Join(o.Boot, "agentsite.yaml"), nil, 0o644)
		}, "is empty"},
		"outputs that contradict": {func(t *testing.T, o PrepareOptions) {
			os.WriteFile(filepath.Join(o.Boot, "agentsite.yaml"), []byte("site: { name: x }\ndevices:\n  pump: { driver: relay, pin: GPIO17, safe: off, lease: 5m, max_on: 1m }\n"), 0o644)
		}, "agentsite.yaml:3"},
		"a folder in the errors' place": {func(t *testing.T, o PrepareOptions) {
			os.MkdirAll(filepath.Join(o.Boot, "agentsite-errors.txt/x"), 0o755)
			os.WriteFile(filepath.Join(o.Boot, "agentsite.yaml"), []byte("site"), 0o644)
		}, "cannot be written"},
		"a claim that is a link": {func(t *testing.T, o PrepareOptions) {
			if err := os.Symlink("/etc/hostname", o.Folder.Path(state.ClaimFile)); err != nil {
				t.Skip(err)
			}
		}, "regular file"},
		"a claim that is none": {func(t *testing.T, o PrepareOptions) {
			os.WriteFile(o.Folder.Path(state.ClaimFile), []byte("root:$6$secret\n"), 0o644)
		}, "invalid claim address"},
	} {
		t.Run(name, func(t *testing.T) {
			const before = "site: { name: before }\n" + autoAddLine + "\n"
			o := flashed(t, map[string]string{"etc/agentsite.yaml": before})
			tt.prepare(t, o)
			_, err := Prepare(t.Context(), o)
			if err == nil || !strings.Contains(err.Error(), tt.says) {
				t.Errorf("%v, want %q", err, tt.says)
			}
			if got := files(t, filepath.Dir(o.Config)); got["agentsite.yaml"] != before || len(got) != 1 {
				t.Errorf("it is now %q", got)
			}
			for name, text := range files(t, o.Boot) {
				if strings.Contains(text, "secret") || name == state.ClaimFile {
					t.Errorf("%s says %q", name, text)
				}
			}
		})
	}
}

// TestFirstBootFinds: a BMP280 on the header is configured automatically, and only once.
func TestFirstBootFinds(t *testing.T) {
	o := flashed(t, nil)
	bus := &chips{at: []uint16{0x76, 0x20}}
	o.board = boardtest.Machine{I2C: map[int]i2c.Bus{1: bus}, Root: o.Root}.Board()
	if err := os.MkdirAll(filepath.Join(o.Root, "dev"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(o.Root, "dev/i2c-1"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	did, err := Prepare(t.Context(), o)
	if err != nil || !slices.Contains(did, "add bmp280: { driver: bmp280, bus: i2c-1, address: 0x76 }") {
		t.Fatal(did, err)
	}
	text, err := os.ReadFile(o.Config)
	if err != nil || !strings.HasSuffix(string(text), "devices:\n  bmp280: { driver: bmp280, bus: i2c-1, address: 0x76 }\n") {
		t.Errorf("%s %v", text, err)
	}
	bus.asked = nil
	if did, err := Prepare(t.Context(), o); did != nil || err != nil || slices.Contains(bus.asked, 0x76) {
		t.Error(did, err, bus.asked)
	}
}

// TestWriteClaim follows a claim from its first address to its owner. The file on the partition is
// written by the program itself: nothing else of the service's file gets there.
func TestWriteClaim(t *testing.T) {
	o := flashed(t, nil)
	shown := filepath.Join(o.Boot, state.ClaimFile)
	key := identity.New()
	for i := range 2 {
		invitation := access.Invitation{Site: key.ID(), Secret: access.ClaimSecret{1}, Addresses: []string{fmt.Sprintf("192.168.1.%d:8474", i)}}
		os.WriteFile(o.Folder.Path(state.ClaimFile), append(invitation.Text(), "\nformat c:\n"...), 0o600)
		if did, err := WriteClaim(o); err != nil || !slices.Equal(did, []string{"write " + shown}) {
			t.Error(did, err)
		}
		if text, _ := os.ReadFile(shown); string(text) != string(invitation.Text()) {
			t.Errorf("%s", text)
		}
		if did, err := WriteClaim(o); err != nil || did != nil {
			t.Error(did, err)
		}
	}
	if err := os.Remove(o.Folder.Path(state.ClaimFile)); err != nil {
		t.Fatal(err)
	}
	if did, err := WriteClaim(o); err != nil || !slices.Equal(did, []string{"remove " + shown}) {
		t.Error(did, err)
	}
	if did, err := WriteClaim(o); err != nil || did != nil || len(files(t, o.Boot)) > 0 {
		t.Error(did, err, files(t, o.Boot))
	}
}

// TestExampleConfig: with all commented-out lines of the example enabled, the file passes a check.
func TestExampleConfig(t *testing.T) {
	var used []string
	for line := range strings.Lines(string(exampleConfig)) {
		if rest, ok := strings.CutPrefix(line, "  # "); ok && strings.Contains(rest, ": { driver:") {
			line = "  " + rest
		}
		used = append(used, line)
	}
	for _, text := range []string{string(exampleConfig), strings.Join(used, "")} {
		cfg, err := config.Parse(bootExample, []byte(text), allDrivers())
		if err == nil {
			err = devices.CheckDevices(cfg)
		}
		if err != nil {
			t.Error(err)
		} else if len(cfg.Devices) != 1 && len(cfg.Devices) != 4 {
			t.Errorf("%d devices in\n%s", len(cfg.Devices), text)
		}
	}
	if !strings.HasPrefix(string(exampleConfig), autoAddLine+"\n") {
		t.Error("a copy of it would have no sensor added")
	}
}

// TestRaspberryPiPage: the page's picture is drawn of the file, and the file is the page's.
func TestRaspberryPiPage(t *testing.T) {
	page, err := os.ReadFile("../../../docs/raspberry-pi.md")
	text, err2 := os.ReadFile("../../../docs/raspberry-pi.yaml")
	if err := errors.Join(err, err2); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(page), "```yaml\n"+string(text)+"```") {
		t.Error("docs/raspberry-pi.md has another configuration than docs/raspberry-pi.yaml")
	}
}
