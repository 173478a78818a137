package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// loadModules loads the folder's modules, if any, in the order of their names.
func loadModules(folder string) error {
	files, err := filepath.Glob(filepath.Join(folder, "*.ko"))
	if err != nil {
		return err
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			return err
		}
		options := ""
		if strings.HasSuffix(file, "-gpio-sim.ko") {
			options = "keep_level=1"
		}
		err = unix.FinitModule(int(f.Fd()), options, 0)
		f.Close()
		if err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("%s: %w", file, err)
		}
	}
	return nil
}

// lines is the number of simulated lines: GPIO0 to GPIO27, as on a Raspberry Pi.
const lines = 28

// addLines creates a chip of the GPIO simulator, if the simulator is loaded
// (Documentation/admin-guide/gpio/gpio-sim.rst).
func addLines() error {
	if _, err := os.Stat("/sys/module/gpio_sim"); err != nil {
		return nil
	}
	if err := mount("configfs", "/sys/kernel/config"); err != nil {
		return err
	}
	device := "/sys/kernel/config/gpio-sim/board"
	bank := device + "/bank0"
	files := [][2]string{{bank + "/num_lines", strconv.Itoa(lines)}, {bank + "/label", "gpio-sim"}}
	for i := range lines {
		files = append(files, [2]string{fmt.Sprintf("%s/line%d/name", bank, i), fmt.Sprintf("GPIO%d", i)})
	}
	files = append(files, [2]string{device + "/live", "1"})
	for _, f := range files {
		if err := os.MkdirAll(filepath.Dir(f[0]), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(f[0], []byte(f[1]), 0); err != nil {
			return err
		}
	}
	return nil
}
