//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/sys/unix"
)

// coldplug loads the kernel modules of the devices that exist now. It does not load modules
// for devices that are plugged in later.
func coldplug() {
	m, err := readModules()
	if err != nil {
		logf("%v", err)
		return
	}
	known := make(map[string]bool) // a Raspberry Pi has many devices of one kind
	filepath.WalkDir("/sys/devices", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "modalias" {
			text, _ := os.ReadFile(path)
			if alias := strings.TrimSpace(string(text)); alias != "" && !known[alias] {
				known[alias] = true
				if err := m.load(alias); err != nil {
					logf("%v", err)
				}
			}
		}
		return nil
	})
}

// modprobe loads the modules with a name or an alias, if any, and their dependencies.
func modprobe(alias string) error {
	m, err := readModules()
	if err != nil {
		return err
	}
	return m.load(alias)
}

// modules are the kernel's modules that are not built in.
type modules struct {
	folder  string
	aliases [][2]string         // a pattern and a name
	files   map[string][]string // a name's file, and those of its dependencies
}

func readModules() (*modules, error) {
	folder, err := modulesFolder()
	if err != nil {
		return nil, err
	}
	m := &modules{folder: folder, files: make(map[string][]string)}
	eachLine(filepath.Join(folder, "modules.alias"), func(f []string) {
		if len(f) == 3 && f[0] == "alias" {
			m.aliases = append(m.aliases, [2]string{underscores(f[1]), underscores(f[2])})
		}
	})
	eachLine(filepath.Join(folder, "modules.dep"), func(f []string) {
		f[0] = strings.TrimSuffix(f[0], ":")
		m.files[underscores(strings.TrimSuffix(filepath.Base(f[0]), ".ko"))] = f
	})
	return m, nil
}

// load is modprobe.
func (m *modules) load(alias string) (err error) {
	alias = underscores(alias)
	names := []string{alias}
	for _, a := range m.aliases {
		if is, _ := filepath.Match(a[0], alias); is {
			names = append(names, a[1])
		}
	}
	for _, name := range names {
		for _, file := range slices.Backward(m.files[name]) {
			err = errors.Join(err, load(filepath.Join(m.folder, file)))
		}
	}
	return err
}

// underscores normalizes a module's name, in which "-" and "_" are equivalent.
func underscores(name string) string { return strings.ReplaceAll(name, "-", "_") }

func modulesFolder() (string, error) {
	all, err := filepath.Glob("/lib/modules/*")
	if err == nil && len(all) != 1 {
		err = fmt.Errorf("/lib/modules has %d folders, not one", len(all))
	}
	if err != nil {
		return "", err
	}
	return all[0], nil
}

func eachLine(file string, do func(fields []string)) {
	f, err := os.Open(file)
	if err != nil {
		return
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); len(fields) > 0 {
			do(fields)
		}
	}
}

func load(file string) error {
	f, err := os.Open(file)
	if err != nil {
		return err
	}
	defer f.Close()
	if err := unix.FinitModule(int(f.Fd()), "", 0); err != nil && !errors.Is(err, unix.EEXIST) {
		return fmt.Errorf("%s: %w", filepath.Base(file), err)
	}
	return nil
}
