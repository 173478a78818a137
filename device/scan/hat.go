package scan

import (
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"agentsite/device/sysfs"
)

// hat is a board with an EEPROM that says what it is, as the firmware puts that into the device tree
// (github.com/raspberrypi/hats, devicetree-guide.md). All that is known of it has a source.
type hat struct {
	vendor, product string
	id              uint64 // of the product, in place of its name
	says            string // what it is, and what of it this program does not drive
	parts           []hatPart
	source          string
}

// hatPart is a part of a HAT with the keys of its device. Outputs have no safe value, which only the owner knows.
type hatPart struct{ where, what, name, driver, keys string }

const (
	noDriver = "this program has no driver for it"
	sound    = "a sound card: it takes GPIO18 to GPIO21, and an address of i2c-1; " + noDriver
)

var hats = []hat{
	{vendor: "Raspberry Pi", product: "Sense HAT",
		says:   "its sensors are listed where the kernel reads them (dtoverlay=rpi-sense); there is no driver for its lamps",
		source: "raspberrypi/rpi-sense, eeprom/eeprom_settings.txt; raspberrypi/linux, rpi-sense-overlay.dts"},
	{vendor: "Raspberry Pi", product: "M.2 HAT+ M Key",
		says:   "a place for a disk; nothing of it is a device here",
		source: "raspberrypi/linux#6202"},
	{vendor: "Raspberry Pi Ltd.", product: "Raspberry Pi DAC Plus",
		says:   sound,
		source: "its /proc/device-tree/hat as published"},
	{vendor: "Raspberry Pi Ltd.", product: "Raspberry Pi DigiAMP+",
		says:   sound,
		source: "its /proc/device-tree/hat as published"},
	{vendor: "IQaudIO Limited www.iqaudio.com", product: "Pi-DAC PRO",
		says:   sound,
		source: "its /proc/device-tree/hat as published"},
	{vendor: "Hailo Technologies", product: "Raspberry Pi AI Hat, Model Hailo-8",
		says:   "a processor for neural networks; nothing of it is a device here",
		source: "raspberrypi/linux, hat_map.dts"},
	{vendor: "Hailo Technologies", product: "Raspberry Pi AI Hat, Model Hailo-8L",
		says:   "a processor for neural networks; nothing of it is a device here",
		source: "raspberrypi/linux, hat_map.dts"},
	{vendor: "Pi Supply", product: "PiJuice HAT",
		says:   "a UPS with a battery; power: off_when: powers the machine off in order before it is empty",
		parts:  []hatPart{{"i2c-1/0x14", "battery of the PiJuice", "ups", "pijuice", "bus: i2c-1, address: 0x14"}},
		source: "PiSupply/PiJuice, Firmware/EEPROM/settings.txt and Software/Source/pijuice.py"},
	{vendor: "Pimoroni Ltd.", product: "Explorer HAT Pro",
		says: "its outputs draw current to ground; there is no driver for its touch keys (0x28), " +
			"and its lamps are GPIO4, GPIO17, GPIO27 and GPIO5",
		parts: []hatPart{
			{"i2c-1/0x48", "analog inputs of the Explorer HAT Pro", "analog", "ads1015", "bus: i2c-1, address: 0x48"},
			{"GPIO23", "input 1", "input-1", "gpio-in", "pin: GPIO23"},
			{"GPIO22", "input 2", "input-2", "gpio-in", "pin: GPIO22"},
			{"GPIO24", "input 3", "input-3", "gpio-in", "pin: GPIO24"},
			{"GPIO25", "input 4", "input-4", "gpio-in", "pin: GPIO25"},
			{"GPIO6", "output 1", "output-1", "gpio-out", "pin: GPIO6"},
			{"GPIO12", "output 2", "output-2", "gpio-out", "pin: GPIO12"},
			{"GPIO13", "output 3", "output-3", "gpio-out", "pin: GPIO13"},
			{"GPIO16", "output 4", "output-4", "gpio-out", "pin: GPIO16"},
			{"GPIO19", "motor 1", "motor-1", "motor", "forward: GPIO19, backward: GPIO20"},
			{"GPIO21", "motor 2", "motor-2", "motor", "forward: GPIO21, backward: GPIO26"},
		},
		source: "claremacrae/raspi_hat_data; pimoroni/explorer-hat, documentation/Technical-reference.md"},
	{vendor: "Pimoroni Ltd.", product: "Display-o-Tron HAT",
		says:   "a display on SPI; " + noDriver,
		source: "claremacrae/raspi_hat_data"},
	{vendor: "Pimoroni Ltd.", product: "Piano HAT",
		says:   "touch keys on I2C; " + noDriver,
		source: "claremacrae/raspi_hat_data"},
	{vendor: "Pimoroni Ltd", product: "Unicorn HAT",
		says:   "lamps at GPIO18; driver: neopixel needs them at the data output of SPI, GPIO10",
		source: "claremacrae/raspi_hat_data"},
	{vendor: "Pimoroni Ltd.", product: "Unicorn HAT HD",
		says:   "lamps on SPI; " + noDriver,
		source: "claremacrae/raspi_hat_data"},
	{vendor: "SunFounder", id: 0x0774,
		says:   "a board with battery, motors and speaker, which its maker's kernel module drives; " + noDriver,
		source: "sunfounder/fusion-hat, fusion_hat/device.py"},
	{vendor: "Pioreactor Inc.", id: 0x0001,
		says:   "the board of a bioreactor, which its maker's programs drive; " + noDriver,
		source: "Pioreactor/pioreactor"},
	{vendor: "CSOFT", product: "Moitessier Navigation HAT",
		says:   "receivers for navigation, which its maker's kernel module drives; " + noDriver,
		source: "mr-rooney/moitessier-device_tree, eeprom/eeprom_settings.txt"},
	{vendor: "mjbots Robotic Systems", product: "mjbots quad pi3 hat",
		says:   "CAN and motors; it takes both SPI ports and the serial port; " + noDriver,
		source: "mjbots/pi3hat, eeprom_settings.txt"},
	{vendor: "bit-builder.com", product: "Chart Plotter Hat",
		says: "CAN, GPS on the serial port, and a power switch on GPIO22 and GPIO23; " +
			"there is a driver for the GPS only",
		source: "gpgreen/chartplotterhat_utils, eeprom/eeprom_settings.txt"},
	{vendor: "Joel Spadin", product: "PWM Fan Hat",
		says:   "a fan on GPIO18 and GPIO24, for the kernel's own control",
		source: "joelspadin/rpi-pwm-fan, eeprom_settings.txt"},
}

// hats lists the HATs on the header and their parts. Stacked ones are hat, hat_1 and so on.
func (s *Scan) hats() (found []Found) {
	for _, folder := range s.Root.Glob("proc/device-tree/hat*") {
		says := func(file string) string { return printed(sysfs.Text(filepath.Join(folder, file))) }
		vendor, product := says("vendor"), says("product")
		if vendor == "" && product == "" {
			continue // not such a node
		}
		name := strings.TrimSpace(product + " by " + vendor)
		id, _ := strconv.ParseUint(says("product_id"), 0, 16)
		f := Found{Where: filepath.Base(folder), What: "HAT " + name, Confidence: Certain,
			Says: "this program knows nothing of it; its maker's documentation has its chips and lines"}
		i := slices.IndexFunc(hats, func(h hat) bool {
			return h.vendor == vendor && (h.product == product || h.product == "" && h.id == id)
		})
		if i < 0 {
			found = append(found, f)
			continue
		}
		f.Says = hats[i].says
		found = append(found, f)
		for _, p := range hats[i].parts {
			found = append(found, Found{Where: p.where, What: p.what, Confidence: Likely, Says: "on the " + hats[i].product,
				Devices: s.suggest(p.name, p.driver, "", p.keys)})
		}
	}
	return found
}

// printed returns a text of an EEPROM, which anybody can have written, as far as it can be shown.
func printed(text string) string {
	const most = 60
	text = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return -1
		}
		return r
	}, text)
	return strings.TrimSpace(text[:min(len(text), most)])
}

// unmarked are boards without such an EEPROM: what is found at an address may be on one of them.
var unmarked = []struct {
	part    string // of which the name begins so
	address uint16
	on      string
	source  string
}{
	{"MAX170", 0x36, "UPS boards such as the Geekworm X708, X728 and X120x and the UPS-Lite", "geekworm-com/x728-script; linshuqin329/UPS-Lite"},
	{"INA219", 0x42, "Waveshare's UPS HAT", "waveshare.com/wiki/UPS_HAT"},
	{"INA219", 0x43, "Waveshare's UPS HAT (C)", "waveshare.com/wiki/UPS_HAT_(C)"},
	{"PCA9685", 0x40, "Adafruit's Servo HAT", "learn.adafruit.com, 16-channel PWM/Servo HAT"},
	{"PCA9685", 0x60, "Adafruit's Motor HAT", "pmunts/muntsos, overlays/README.txt"},
	{"ADS10", 0x48, "Pimoroni's Automation HAT", "pmunts/muntsos, overlays/README.txt"},
}

// boardOf says on which boards without an EEPROM a part with this address is; "" where none is known.
func boardOf(part string, addr uint16) string {
	for _, b := range unmarked {
		if b.address == addr && strings.HasPrefix(part, b.part) {
			return "it may be that of " + b.on
		}
	}
	return ""
}
