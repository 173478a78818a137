package board

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"agentsite/device/driver"
)

// Pin is the canonical name of a line of the board. It is GPIO17 (the BCM number of a Raspberry
// Pi), gpiochip0/17 (a kernel's chip and the line's offset), or the line's name in the kernel. A
// chip's label may replace its number and is stable. The zero Pin is no line.
type Pin string

// header lists the positions of the 40-pin header, which is the same on all boards that
// have it: BCM numbers, power and ground.
var header = strings.Fields(`
	3.3V 5V     2 5V     3 ground 4 14     ground 15
	17 18       27 ground 22 23   3.3V 24  10 ground
	9 25        11 8    ground 7  0 1      5 ground
	6 12        13 ground 19 16   26 20    ground 21`)

var (
	bcmName    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^GPIO(0|[1-9][0-9]{0,2})$`) })
	headerName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:P1[_-])([0-9]{1,3})$`) })
	chipName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([!-.0-~]{1,31})/(0|[1-9][0-9]{0,3})$`) })
	lineName   = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[!-.0-~]([ -.0-~]{0,29}[!-.0-~])?$`) }) // at most the kernel's 31 letters, without a slash
	nearBCM    = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^(?i:GPIO|BCM)[ _-]?([0-9]+)$`) })
	otherName  = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`^(?:(?i:D|IO|BOARD|PHYS|WPI|J8)[ :_-]?|(?i:PIN)[ :_-]|[Pp]in)([0-9]{1,3})$`)
	}) // of other programs
	bareNumber = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[0-9]+$`) })
)

// lastBCM is the last line of any Raspberry Pi's own controllers: a BCM2711 has 58.
const lastBCM = 57

// UnmarshalText reads a line's name, or its position on the 40-pin header such as
// P1_11. A bare number is refused: it could be either.
func (p *Pin) UnmarshalText(text []byte) error {
	s := string(text)
	if bareNumber().MatchString(s) {
		return bareNumberError(s)
	}
	if m := headerName().FindStringSubmatch(s); m != nil {
		what, ok := position(m[1])
		switch {
		case !ok:
			return fmt.Errorf("takes a line such as GPIO17 or P1_11; the header has the positions 1 to %d, not %s", len(header), m[1])
		case !bareNumber().MatchString(what):
			return fmt.Errorf("takes a line such as GPIO17 or P1_11; P1_%s is %s, which is no line", m[1], what)
		}
		*p = Pin("GPIO" + what)
		return nil
	}
	if m := nearBCM().FindStringSubmatch(s); m != nil {
		n, err := strconv.Atoi(m[1])
		switch {
		case err != nil || n > lastBCM:
			return fmt.Errorf("takes a line such as GPIO17 or P1_11; no Raspberry Pi has %.40s, and the header ends with GPIO27 (a line that the kernel of another board calls so is written with its chip: gpiochip0/%s)", s, m[1])
		case !bcmName().MatchString(strings.ToUpper(s)):
			return fmt.Errorf("takes a line such as GPIO17 or P1_11; write GPIO%d, not %.40s (a line that the kernel of another board calls so is written with its chip: gpiochip0/%s)", n, s, m[1])
		}
	}
	if m := otherName().FindStringSubmatch(s); m != nil {
		what, ok := position(m[1])
		switch isLine := ok && bareNumber().MatchString(what); {
		case isLine:
			return fmt.Errorf("takes a line such as GPIO17 or P1_11, not %.40q; write GPIO%s for that BCM number, or P1_%s for that position of the header (GPIO%s)", s, m[1], m[1], what)
		default:
			return fmt.Errorf("takes a line such as GPIO17 or P1_11, not %.40q; write GPIO%.4s for that BCM number", s, m[1])
		}
	}
	if upper := strings.ToUpper(s); bcmName().MatchString(upper) {
		s = upper
	}
	if !chipName().MatchString(s) && !lineName().MatchString(s) {
		return fmt.Errorf("takes a line such as GPIO17, P1_11 or gpiochip0/17, not %.40q", s)
	}
	*p = Pin(s)
	return nil
}

// position returns the pin at a position of the header.
func position(number string) (what string, ok bool) {
	n, err := strconv.Atoi(number)
	if err != nil || n < 1 || n > len(header) {
		return "", false
	}
	return header[n-1], true
}

// bareNumberError names both lines that a number could mean.
func bareNumberError(number string) error {
	what, ok := position(number)
	switch {
	case !ok:
		return fmt.Errorf("takes a name, not a number; write GPIO%.4s for that BCM number", number)
	case !bareNumber().MatchString(what):
		what += ", which is no line"
	default:
		what = "GPIO" + what
	}
	return fmt.Errorf("takes a name, not a number; write GPIO%s for that BCM number, or P1_%s for that position of the header (%s)", number, number, what)
}

// number returns the BCM number of a pin that is written as one.
func (p Pin) number() (int, bool) {
	m := bcmName().FindStringSubmatch(string(p))
	if m == nil {
		return 0, false
	}
	n, err := strconv.Atoi(m[1])
	return n, err == nil
}

// place returns the chip, by name or label, and the offset of a pin that is written so.
func (p Pin) place() (chip string, offset int, ok bool) {
	m := chipName().FindStringSubmatch(string(p))
	if m == nil {
		return "", 0, false
	}
	offset, err := strconv.Atoi(m[2])
	return m[1], offset, err == nil
}

// Resource returns the pin as a resource that one device has for itself.
func (p Pin) Resource() driver.Resource { return driver.Resource{Name: string(p)} }

// resourceLine returns the line that a resource names; ok is false for other resources.
func resourceLine(c driver.Resource) (_ Pin, ok bool) {
	if c.Elsewhere {
		return "", false
	}
	for _, other := range []string{"i2c-", "spidev", "pwmchip", "camera ", "/"} {
		if strings.HasPrefix(c.Name, other) {
			return "", false
		}
	}
	return Pin(c.Name), c.Name != ""
}
