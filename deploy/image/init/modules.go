//go:build linux

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"
)

// coldplug loads the kernel modules of the devices that exist now. It does not load modules
// for devices that are plugged in later.
func coldplug() {
	var found []string
	filepath.WalkDir("/sys/devices", func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == "modalias" {
			if text, err := os.ReadFile(path); err == nil {
				found = append(found, strings.TrimSpace(string(text)))
			}
		}
		return nil
	})
	for _, alias := range found {
		if err := modprobe(alias); err != nil {
			logf("%v", err)
		}
	}
}

// modprobe loads the modules with a name or an alias, if any, and their dependencies.
func modprobe(alias string) error {
	folder, err := modulesFolder()
	if err != nil {
		return err
	}
	alias = underscores(alias)
	names := []string{alias}
	eachLine(filepath.Join(folder, "modules.alias"), func(f []string) {
		if len(f) == 3 && f[0] == "alias" {
			if is, _ := filepath.Match(underscores(f[1]), alias); is {
				names = append(names, underscores(f[2]))
			}
		}
	})
	eachLine(filepath.Join(folder, "modules.dep"), func(f []string) {
		file := strings.TrimSuffix(f[0], ":")
		name := underscores(strings.TrimSuffix(filepath.Base(file), ".ko"))
		for _, n := range names {
			if n == name {
				for i := len(f) - 1; i > 0; i-- {
					err = errors.Join(err, load(filepath.Join(folder, f[i])))
				}
				err = errors.Join(err, load(filepath.Join(folder, file)))
			}
		}
	})
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
