package kernel

import (
	"slices"

	"agentsite/device/driver"
)

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "iio", Doc: "a sensor or converter with an IIO kernel driver, such as bme280 or ads1015",
			Entry: "{ driver: iio, name: bme280 }", Config: func() driver.Config { return &Selector{class: iio} }},
		{Name: "kernel:", Instead: func(part string) string { return Instead("", part) }, Doc: "a chip on I2C with the kernel driver named after the colon, such as kernel:bme280",
			Entry:  "{ driver: kernel:bme280, address: 0x76 }",
			Config: func() driver.Config { return &Chip{Bus: "i2c-1"} }, Of: func(chip string) driver.Config {
				if slices.Contains(dht, chip) {
					return nil // it is on a line, not on I2C
				}
				return &Chip{Bus: "i2c-1", name: chip}
			}},
		{Name: "hwmon", Doc: "a chip with a hwmon kernel driver, such as lm75, sht3x or ina219",
			Entry: "{ driver: hwmon, name: lm75 }", Config: func() driver.Config { return &Selector{class: hwmon} }},
		{Name: "w1", Doc: "a 1-Wire thermometer read by the kernel: DS18B20, DS18S20, DS1822, DS1825, DS28EA00",
			Also: "ds18b20 ds18s20 ds1822 ds1825 ds28ea00 one-wire dallas dallas-temp", Setup: "dtoverlay=w1-gpio",
			Note:   "Its data goes to GPIO4 (P1_7), with a resistor of 4.7 kΩ to 3.3 V. For another line write dtoverlay=w1-gpio,gpiopin=17.",
			Lacks:  map[string]string{"pin": "config.txt says which line, as in dtoverlay=w1-gpio,gpiopin=4: remove pin"},
			Config: func() driver.Config { return new(W1) }},
		{Name: "thermal", Doc: "one of the board's thermal zones", Also: "cpu-temperature",
			Entry: "{ driver: thermal, zone: cpu-thermal }", Config: func() driver.Config { return new(Thermal) }},
		{Name: "led", Doc: "an LED with a kernel driver", Entry: "{ driver: led, name: ACT, safe: off }",
			Lacks: map[string]string{"pin": "an LED on a line of the board is written driver: gpio-out, or driver: dimmer"}, Config: func() driver.Config { return new(LED) }},
		{Name: "pwm", Doc: "a PWM channel with a kernel driver: a dimmer, a motor's speed, a servo", Also: "hardware-pwm",
			Entry: "{ driver: pwm, chip: pwmchip0, safe: off }", Setup: "dtoverlay=pwm",
			Lacks: map[string]string{"pin": "config.txt says which line, as in dtoverlay=pwm,pin=18,func=2: remove pin"}, Config: func() driver.Config { return new(PWM) }},
		{Name: "input", Doc: "buttons, switches and rotary encoders with a kernel driver",
			Entry: "{ driver: input, name: gpio-keys }",
			Lacks: map[string]string{"pin": "a button on a line of the board is written driver: button"}, Config: func() driver.Config { return new(Input) }},
		{Name: "lirc", Doc: "the keys of a remote control, by an infrared receiver with a kernel driver",
			Also: "infrared ir-receiver tsop38238 vs1838b remote-control", Setup: "dtoverlay=gpio-ir,gpio_pin=18",
			Lacks: map[string]string{"pin": "config.txt says which line, as in dtoverlay=gpio-ir,gpio_pin=18: remove pin"}, Config: func() driver.Config { return &Lirc{Device: "/dev/lirc0"} }},
	}
}
