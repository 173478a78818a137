package kernel

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "iio", Doc: "a sensor or converter with an IIO kernel driver, such as bme280 or ads1015", Config: func() driver.Config { return &Selector{class: iio} }},
		{Name: "kernel:", Instead: func(part string) string { return Instead("", part) }, Doc: "a chip on I2C with the kernel driver named after the colon, such as kernel:bme280",
			Config: func() driver.Config { return &Chip{Bus: "i2c-1"} }, Of: func(chip string) driver.Config { return &Chip{Bus: "i2c-1", name: chip} }},
		{Name: "hwmon", Doc: "a chip with a hwmon kernel driver, such as lm75, sht3x or ina219", Config: func() driver.Config { return &Selector{class: hwmon} }},
		{Name: "w1", Doc: "a 1-Wire thermometer read by the kernel: DS18B20, DS18S20, DS1822, DS1825, DS28EA00", Config: func() driver.Config { return new(W1) }},
		{Name: "thermal", Doc: "one of the board's thermal zones", Config: func() driver.Config { return new(Thermal) }},
		{Name: "led", Doc: "an LED with a kernel driver", Config: func() driver.Config { return new(LED) }},
		{Name: "pwm", Doc: "a PWM channel with a kernel driver: a dimmer, a motor's speed, a servo", Config: func() driver.Config { return new(PWM) }},
		{Name: "input", Doc: "buttons, switches and rotary encoders with a kernel driver", Config: func() driver.Config { return new(Input) }},
		{Name: "lirc", Doc: "the keys of a remote control, by an infrared receiver with a kernel driver", Config: func() driver.Config { return &Lirc{Device: "/dev/lirc0"} }},
	}
}
