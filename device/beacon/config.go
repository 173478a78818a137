package beacon

import (
	"context"
	"crypto/aes"
	"crypto/cipher"
	"encoding/hex"
	"slices"
	"strconv"
	"strings"
	"time"

	"agentsite/device"
	"agentsite/device/driver"
)

// family is a driver of this package: one or more formats of advertisements.
type family struct {
	driver, doc, also, entry, note string

	lostAfter time.Duration // unless the configuration has another
	// read appends what an advertisement says to all. It allocates nothing.
	read   func(key cipher.Block, ad *advert, all []said) ([]said, note, error)
	config func(*scanner, *family) driver.Config
}

// common is the YAML that all devices of this package have.
type common struct {
	Address   string        `json:"address" jsonschema:"the device's Bluetooth address, such as A4:C1:38:01:02:03; agentsite scan shows it"`
	LostAfter time.Duration `json:"lost_after,omitempty" jsonschema:"how long a value is good after the device was last heard, 5s to 72h"`

	scanner *scanner
	of      *family
}

func newCommon(s *scanner, f *family) common {
	return common{LostAfter: f.lostAfter, scanner: s, of: f}
}

const (
	minLost = 5 * time.Second
	maxLost = 72 * time.Hour
)

func (c *common) Validate() error {
	if _, err := parseAddress(c.Address); err != nil {
		return err
	}
	if c.LostAfter < minLost || c.LostAfter > maxLost {
		return device.Faultf(device.Invalid, "lost_after: %v is not 5s to 72h", c.LostAfter)
	}
	return nil
}

// Resources returns the address, which two devices cannot have, and by which a scan knows what is in use.
func (c *common) Resources() []driver.Resource {
	a, _ := parseAddress(c.Address)
	return []driver.Resource{{Name: a.String(), Elsewhere: true}}
}

// open starts to listen. Whether the device is there only its next advertisement shows.
func (c *common) open(ctx context.Context, model string, points []device.Point, key cipher.Block) (device.Device, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	a, err := parseAddress(c.Address)
	if err != nil {
		return nil, err
	}
	d := newBeacon(c.of, a, device.Description{Model: model + " " + a.String(), Points: points}, key, c.LostAfter)
	d.scanner = c.scanner
	c.scanner.add(d)
	return d, nil
}

// bthomeConfig is the YAML of bthome.
type bthomeConfig struct {
	common
	Inputs  []string    `json:"inputs" jsonschema:"what it advertises, such as [temperature, humidity, battery]; the second of a name is temperature-2"`
	KeyFile driver.File `json:"key_file,omitempty" jsonschema:"a file with its encryption key, 32 hexadecimal digits; then only what is encrypted with it counts"`
}

const maxInputs = 32

func (c *bthomeConfig) Validate() error {
	switch {
	case len(c.Inputs) == 0:
		return device.Faultf(device.Invalid, "inputs: the list is empty; write what the device advertises, such as "+
			"[temperature, humidity, battery]; agentsite scan shows it")
	case len(c.Inputs) > maxInputs:
		return device.Faultf(device.Invalid, "inputs: %d are too many; write at most %d", len(c.Inputs), maxInputs)
	}
	for _, name := range c.Inputs {
		if of, _ := ordinal(name); of == nil {
			return device.Faultf(device.Invalid, "inputs: BTHome has no %.40q%s", name, device.Suggest(name, objectNames(), ""))
		}
	}
	if err := c.common.Validate(); err != nil {
		return err
	}
	return c.Describe().Validate()
}

// ordinal returns the object of an input's name and which of those of that name it is, such as 2 for temperature-2.
func ordinal(name string) (*object, int) {
	base, nth := name, 1
	if before, after, ok := strings.Cut(name, "-"); ok {
		n, err := strconv.Atoi(after)
		if err != nil || n < 2 || n > maxSaid || strconv.Itoa(n) != after {
			return nil, 0
		}
		base, nth = before, n
	}
	return named(base), nth
}

func objectNames() (all []string) {
	for _, o := range objects {
		if o.name != "" && !slices.Contains(all, o.name) {
			all = append(all, o.name)
		}
	}
	return all
}

// Describe needs no hardware.
func (c *bthomeConfig) Describe() device.Description {
	a, _ := parseAddress(c.Address)
	d := device.Description{Model: "BTHome " + a.String()}
	for _, name := range c.Inputs {
		if o, _ := ordinal(name); o != nil {
			d.Points = append(d.Points, o.point(name))
		}
	}
	return d
}

// Open reads the key.
func (c *bthomeConfig) Open(ctx context.Context) (device.Device, error) {
	var key cipher.Block
	if c.KeyFile != "" {
		text, err := c.KeyFile.Secret()
		if err != nil {
			return nil, device.Faultf(device.Invalid, "key_file: %w", err)
		}
		raw, err := hex.DecodeString(strings.TrimSpace(text))
		if err != nil || len(raw) != 16 {
			return nil, device.Faultf(device.Invalid,
				"key_file: the key in it has not 32 hexadecimal digits; write the one of the device's app")
		}
		if key, err = aes.NewCipher(raw); err != nil {
			return nil, device.Faultf(device.Internal, "key_file: %w", err)
		}
	}
	return c.open(ctx, "BTHome", c.Describe().Points, key)
}

// pvvxConfig is the YAML of pvvx.
type pvvxConfig struct{ common }

// Describe needs no hardware.
func (c *pvvxConfig) Describe() device.Description {
	a, _ := parseAddress(c.Address)
	return device.Description{Model: "pvvx thermometer " + a.String(), Points: pvvxPoints}
}

// Open starts to listen.
func (c *pvvxConfig) Open(ctx context.Context) (device.Device, error) {
	return c.open(ctx, "pvvx thermometer", pvvxPoints, nil)
}

// ruuviConfig is the YAML of ruuvi.
type ruuviConfig struct {
	common
	Model string `json:"model,omitempty" jsonschema:"tag (data format 5) or air (data format 6)"`
}

func (c *ruuviConfig) Validate() error {
	if c.format() == 0 {
		return device.Faultf(device.Invalid, "model: %.40q is unknown; write tag or air", c.Model)
	}
	return c.common.Validate()
}

func (c *ruuviConfig) format() byte {
	return map[string]byte{"tag": ruuviTag, "air": ruuviAir}[c.Model]
}

func (c *ruuviConfig) name() string {
	return map[string]string{"tag": "RuuviTag", "air": "Ruuvi Air"}[c.Model]
}

// Describe needs no hardware.
func (c *ruuviConfig) Describe() device.Description {
	a, _ := parseAddress(c.Address)
	return device.Description{Model: c.name() + " " + a.String(), Points: ruuviPoints[c.format()]}
}

// Open starts to listen.
func (c *ruuviConfig) Open(ctx context.Context) (device.Device, error) {
	return c.open(ctx, c.name(), ruuviPoints[c.format()], nil)
}
