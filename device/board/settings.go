package board

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"agentsite/device/driver"
)

// maxSettings is far more than the firmware reads of config.txt.
const maxSettings = 256 << 10

// settings returns the lines of config.txt that apply to any board: those before the first
// section, and those below [all]. Other sections may be for other boards.
func (b *Board) settings() ([]string, error) {
	f, err := os.Open(b.files.Path(b.ConfigFile()))
	if err != nil {
		return nil, err
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, maxSettings+1))
	if err == nil && len(text) > maxSettings {
		err = fmt.Errorf("%s is larger than %d KiB", b.ConfigFile(), maxSettings>>10)
	}
	if err != nil {
		return nil, err
	}
	var all []string
	forAll := true
	for line := range strings.Lines(string(text)) {
		line = strings.TrimSpace(line)
		switch {
		case strings.HasPrefix(line, "["):
			forAll = line == "[all]"
		case forAll && line != "" && line[0] != '#':
			all = append(all, line)
		}
	}
	return all, nil
}

// The lines of config.txt that turn the header's buses on.
const (
	i2cOn    = "dtparam=i2c_arm=on"
	spiOn    = "dtparam=spi=on"
	serialOn = "enable_uart=1"
)

// Setup returns the lines of a Raspberry Pi's config.txt that turn on the buses of resources.
func Setup(resources []driver.Resource) []string {
	var all []string
	for _, on := range []struct{ prefix, line string }{
		{"i2c-1/", i2cOn}, {"spidev0.", spiOn}, {"/dev/serial0", serialOn},
	} {
		if slices.ContainsFunc(resources, func(c driver.Resource) bool { return strings.HasPrefix(c.Name, on.prefix) }) {
			all = append(all, on.line)
		}
	}
	return all
}

// oneWire returns the BCM number of the line that the kernel uses for 1-Wire: the one in
// config.txt, or the usual one.
func (b *Board) oneWire() string {
	const usual = "4"
	if b.ConfigFile() == "" {
		return usual
	}
	settings, _ := b.settings() // settings that cannot be read are the defaults
	for _, s := range settings {
		words := strings.Split(s, ",")
		if name, ok := strings.CutPrefix(words[0], "dtoverlay="); !ok || name != "w1-gpio" && name != "w1-gpio-pullup" {
			continue
		}
		for _, w := range words[1:] {
			if line, ok := strings.CutPrefix(w, "gpiopin="); ok && bareNumber().MatchString(line) {
				return line
			}
		}
		return usual
	}
	return usual
}
