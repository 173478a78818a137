package kernel

import "agentsite/device/driver"

// Drivers returns the drivers of this package.
func Drivers() []driver.Driver {
	return []driver.Driver{
		{Name: "iio", Doc: "a sensor or converter that Linux drives through IIO, such as bme280 or ads1015", Config: func() driver.Config { return new(IIO) }},
		{Name: "kernel:", Instead: func(part string) string { return Instead("", part) }, Doc: "a chip on I2C that the kernel's driver of the name after the colon drives, such as kernel:bme280",
			Config: func() driver.Config { return &Chip{Bus: "i2c-1"} }, Of: func(chip string) driver.Config { return &Chip{Bus: "i2c-1", name: chip} }},
		{Name: "hwmon", Doc: "a chip that Linux drives as a hardware monitor, such as lm75, sht3x or ina219", Config: func() driver.Config { return new(Hwmon) }},
		{Name: "w1", Doc: "a 1-Wire thermometer that Linux drives: DS18B20, DS18S20, DS1822, DS1825, DS28EA00", Config: func() driver.Config { return new(W1) }},
		{Name: "thermal", Doc: "one of the board's thermal zones", Config: func() driver.Config { return new(Thermal) }},
		{Name: "led", Doc: "a lamp that Linux drives as an LED", Config: func() driver.Config { return new(LED) }},
		{Name: "pwm", Doc: "a PWM channel that Linux drives: a dimmer, a motor's speed, a servo", Config: func() driver.Config { return new(PWM) }},
		{Name: "input", Doc: "buttons, switches and rotary encoders that Linux reads", Config: func() driver.Config { return new(Input) }},
		{Name: "lirc", Doc: "the keys of a remote control, by a receiver of infrared light that Linux drives", Config: func() driver.Config { return &Lirc{Device: "/dev/lirc0"} }},
	}
}
