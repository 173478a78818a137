package chip

import (
	"slices"

	"agentsite/device/board"
	"agentsite/device/driver"
)

// Advice for keys that people look for.
const (
	onePin   = "a DS18B20 at a line of the board is written { driver: w1 }, with dtoverlay=w1-gpio in config.txt"
	stripPin = "the strip's data goes to MOSI of the SPI port, GPIO10 (P1_19) by default: remove pin"
)

// Drivers returns the drivers of this package, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "ads1015", Doc: "voltages by an ADS1015 (12 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1015") }},
		{Name: "ads1115", Doc: "voltages by an ADS1115 (16 bits) on I2C", Also: "adc analog", Config: func() driver.Config { return newADS1x15(b, "ADS1115") }},
		{Name: "adxl345", Doc: "acceleration by an ADXL345 on I2C", Also: "accelerometer gy-291",
			Config: func() driver.Config { return &adxl345Config{b.I2C(0x53, 0x1D), 2} }},
		{Name: "aht20", Doc: "temperature and humidity by an AHT20 on I2C", Also: "dht20 aht21", Config: func() driver.Config { return newAHT20(b.I2C(0x38)) }},
		{Name: "am2320", Doc: "temperature and humidity by an AM2320 on I2C", Config: func() driver.Config { return newAM2320(b.I2C(0x5C)) }},
		{Name: "apa102", Doc: "the colour of a strip of APA102 or SK9822 lamps on SPI", Also: "sk9822 dotstar",
			Lacks: map[string]string{"pin": stripPin}, Note: "The strip's data input goes to MOSI and its clock to SCLK.",
			Entry: "{ driver: apa102, lamps: 30, safe: { red: 0, green: 0, blue: 0 } }", Config: func() driver.Config { return newStrip(b, apa102) }},
		{Name: "bh1750", Doc: "brightness by a BH1750 on I2C", Also: "gy-30 gy-302 lux light", Config: func() driver.Config { return newBH1750(b.I2C(0x23, 0x5C)) }},
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return newBMx280(b.I2C(0x76, 0x77), "BME280") }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Also: "bmp085 gy-68", Config: func() driver.Config { return newBMP180(b.I2C(0x77)) }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return newBMx280(b.I2C(0x76, 0x77), "BMP280") }},
		{Name: "camera", Doc: "images of a Raspberry Pi camera", Also: "picamera pi-camera rpicam libcamera ov5647 imx219",
			Note:   "It needs the program rpicam-still, of the package rpicam-apps.",
			Config: func() driver.Config { return &cameraConfig{Width: 1024, Height: 768} }},
		{Name: "ccs811", Doc: "air quality by a CCS811 on I2C", Also: "voc", Config: func() driver.Config { return newCCS811(b.I2C(0x5A, 0x5B)) }},
		{Name: "ds18b20", Doc: "DS18B20 thermometers behind a DS2482 or DS2483 on I2C", Also: "ds2482 ds2483",
			Lacks: map[string]string{"pin": onePin, "id": "write sensors: [{ name: floor, id: … }], or { driver: w1, id: … } for one at a line of the board"}, Note: "A thermometer whose data wire is at a line of the board is written driver: w1.",
			Config: func() driver.Config { return &ds18b20Config{I2C: b.I2C(0x18, 0x19, 0x1A, 0x1B)} }},
		{Name: "gps", Doc: "position, speed and height by a GPS receiver (NMEA) on a serial port", Also: "nmea neo-6m neo-m8n ublox",
			Config: func() driver.Config { return &gpsConfig{b.Serial(), 9600} }},
		{Name: "hd44780", Doc: "a character display by an HD44780 behind a PCF8574 on I2C",
			Also: "lcd lcd1602 lcd2004 1602 2004 lcd-pcf8574", Config: func() driver.Config {
				return &hd44780Config{I2C: b.I2C(append([]uint16{0x27, 0x3F}, slices.Concat(board.Addresses(0x20, 0x26), board.Addresses(0x38, 0x3E))...)...), Columns: 16, Rows: 2}
			}},
		{Name: "hdc302x", Doc: "temperature and humidity by an HDC3020, HDC3021 or HDC3022 on I2C", Also: "hdc3020 hdc3021 hdc3022",
			Config: func() driver.Config { return newHDC302x(b.I2C(0x44, 0x45, 0x46, 0x47)) }},
		{Name: "hx711", Doc: "a load cell by an HX711 on two lines", Also: "load-cell scale weight",
			Entry: "{ driver: hx711, data: GPIO5, clock: GPIO6 }", Config: func() driver.Config { return &hx711Config{Gain: 128, board: b} }},
		{Name: "ina219", Doc: "voltage, current and power by an INA219 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina219} }},
		{Name: "ina226", Doc: "voltage, current and power by an INA226 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina226} }},
		{Name: "ina260", Doc: "voltage, current and power by an INA260 on I2C", Config: func() driver.Config { return newINA260(b.I2C(ina2xxAddresses...)) }},
		{Name: "max17043", Doc: "voltage and charge of a lithium battery by a MAX17043, MAX17048 or the like on I2C",
			Also:   "max17040 max17041 max17044 max17048 max17049 fuel-gauge battery ups ups-hat x728 x708 x1200 x120x",
			Config: func() driver.Config { return &gaugeConfig{I2C: b.I2C(0x36)} }},
		{Name: "max7219", Doc: "digits of seven segments by a MAX7219 on SPI", Also: "seven-segment",
			Config: func() driver.Config { return &max7219Config{SPI: b.SPI(), Digits: 8, Brightness: 8} }},
		{Name: "mcp23008", Doc: "switches and states by an MCP23008 on I2C",
			Entry: "{ driver: mcp23008, outputs: { pump: { pin: GP0, safe: off } } }", Config: func() driver.Config { return newExpander(b, mcp23008) }},
		{Name: "mcp23017", Doc: "switches and states by an MCP23017 on I2C", Also: "port-expander gpio-expander",
			Entry: "{ driver: mcp23017, outputs: { pump: { pin: GPA0, safe: off } } }", Config: func() driver.Config { return newExpander(b, mcp23017) }},
		{Name: "mcp3008", Doc: "voltages by an MCP3008 on SPI", Also: "adc analog", Config: func() driver.Config {
			return &mcp3008Config{SPI: b.SPI(), Channels: []int{0, 1, 2, 3, 4, 5, 6, 7}, Reference: 3.3}
		}},
		{Name: "mcp9808", Doc: "temperature by an MCP9808 on I2C", Config: func() driver.Config { return newMCP9808(b.I2C(board.Addresses(0x18, 0x1F)...)) }},
		{Name: "mpu6050", Doc: "acceleration and rotation by an MPU6050 on I2C", Also: "gy-521 imu gyro", Config: func() driver.Config { return newMPU(b, mpu6050) }},
		{Name: "mpu6500", Doc: "acceleration and rotation by an MPU6500 on I2C", Config: func() driver.Config { return newMPU(b, mpu6500) }},
		{Name: "mpu9250", Doc: "acceleration and rotation by an MPU9250 on I2C", Also: "gy-9250", Config: func() driver.Config { return newMPU(b, mpu9250) }},
		{Name: "neopixel", Doc: "the colour of a strip of WS2812B or SK6812 lamps on SPI",
			Also:  "ws2812 ws2812b ws281x sk6812 led-strip rgb-strip",
			Lacks: map[string]string{"pin": stripPin}, Note: "The strip's data input goes to MOSI. The port's other lines are not wired, and nothing else can use them.", Entry: "{ driver: neopixel, lamps: 30, safe: { red: 0, green: 0, blue: 0 } }", Config: func() driver.Config { return newStrip(b, neopixel) }},
		{Name: "pca9685", Doc: "servos and dimmed lamps by a PCA9685 on I2C", Also: "servo-driver",
			Entry: "{ driver: pca9685, outputs: { lamp: { channel: 0, safe: off } } }", Config: func() driver.Config { return &pca9685Config{I2C: b.I2C(board.Addresses(0x40, 0x77)...)} }},
		{Name: "pcf8574", Doc: "switches and states by a PCF8574 or PCF8574A on I2C", Also: "pcf8574a",
			Entry: "{ driver: pcf8574, outputs: { pump: { pin: P0, safe: off } } }", Config: func() driver.Config { return newPCF857x(b, "PCF8574") }},
		{Name: "pcf8575", Doc: "switches and states by a PCF8575 on I2C",
			Entry: "{ driver: pcf8575, outputs: { pump: { pin: P00, safe: off } } }", Config: func() driver.Config { return newPCF857x(b, "PCF8575") }},
		{Name: "pijuice", Doc: "voltage and charge of a PiJuice's battery, and whether it is fed, on I2C", Also: "ups ups-hat battery",
			Config: func() driver.Config { return newPiJuice(b.I2C(0x14)) }},
		{Name: "pms5003", Doc: "dust in the air by a PMS5003 on a serial port", Also: "plantower dust pm25",
			Config: func() driver.Config { return &pms5003Config{b.Serial()} }},
		{Name: "registers", Doc: "any simple sensor on I2C whose registers you describe",
			Entry: "{ driver: registers, address: 0x4F, registers: [{ name: t, register: 0, unit: Cel, range: 0..50 }] }", Config: func() driver.Config { return &registersConfig{I2C: b.I2C()} }},
		{Name: "scd4x", Doc: "carbon dioxide, temperature and humidity by an SCD40, SCD41 or SCD43 on I2C",
			Also: "scd40 scd41 scd43 co2", Config: func() driver.Config { return newSCD4x(b.I2C(0x62)) }},
		{Name: "sgp30", Doc: "air quality by an SGP30 on I2C", Also: "voc", Config: func() driver.Config { return newSGP30(b.I2C(0x58)) }},
		{Name: "sht4x", Doc: "temperature and humidity by an SHT40, SHT41, SHT43 or SHT45 on I2C", Also: "sht40 sht41 sht43 sht45",
			Config: func() driver.Config { return newSHT4x(b.I2C(0x44, 0x45, 0x46)) }},
		{Name: "ssd1306", Doc: "a display of 128 by 64 or 32 pixels by an SSD1306 on I2C", Also: "oled display",
			Config: func() driver.Config { return &ssd1306Config{I2C: b.I2C(0x3C, 0x3D), Height: 64} }},
		{Name: "tca9534", Doc: "switches and states by a TCA9534, PCA9534, PCA9554 or the like on I2C", Also: "pca9534 pca9554",
			Entry: "{ driver: tca9534, outputs: { pump: { pin: P0, safe: off } } }", Config: func() driver.Config { return newExpander(b, tca9534) }},
		{Name: "tca9535", Doc: "switches and states by a TCA9535, PCA9535, PCA9555 or the like on I2C", Also: "pca9535 pca9555",
			Entry: "{ driver: tca9535, outputs: { pump: { pin: P00, safe: off } } }", Config: func() driver.Config { return newExpander(b, tca9535) }},
		{Name: "tm1637", Doc: "digits of seven segments by a TM1637 on two lines", Also: "seven-segment",
			Entry: "{ driver: tm1637, clock: GPIO5, data: GPIO6 }", Config: func() driver.Config { return &tm1637Config{Digits: 4, Brightness: 4, board: b} }},
		{Name: "tmp102", Doc: "temperature by a TMP102 on I2C", Config: func() driver.Config { return newTMP102(b.I2C(0x48, 0x49, 0x4A, 0x4B)) }},
	}
}
