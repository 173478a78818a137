package chip

import (
	"slices"

	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this package, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "ads1015", Doc: "voltages by an ADS1015 (12 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1015") }},
		{Name: "ads1115", Doc: "voltages by an ADS1115 (16 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1115") }},
		{Name: "adxl345", Doc: "acceleration by an ADXL345 on I2C", Config: func() driver.Config { return &adxl345Config{b.I2C(0x53, 0x1D), 2} }},
		{Name: "aht20", Doc: "temperature and humidity by an AHT20 on I2C", Config: func() driver.Config { return newAHT20(b.I2C(0x38)) }},
		{Name: "am2320", Doc: "temperature and humidity by an AM2320 on I2C", Config: func() driver.Config { return newAM2320(b.I2C(0x5C)) }},
		{Name: "apa102", Doc: "the colour of a strip of APA102 or SK9822 lamps on SPI", Config: func() driver.Config { return newStrip(b, apa102) }},
		{Name: "bh1750", Doc: "brightness by a BH1750 on I2C", Config: func() driver.Config { return newBH1750(b.I2C(0x23, 0x5C)) }},
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return newBMx280(b.I2C(0x76, 0x77), "BME280") }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Config: func() driver.Config { return newBMP180(b.I2C(0x77)) }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return newBMx280(b.I2C(0x76, 0x77), "BMP280") }},
		{Name: "camera", Doc: "images of a Raspberry Pi camera", Config: func() driver.Config { return &cameraConfig{Width: 1024, Height: 768} }},
		{Name: "ccs811", Doc: "air quality by a CCS811 on I2C", Config: func() driver.Config { return newCCS811(b.I2C(0x5A, 0x5B)) }},
		{Name: "ds18b20", Doc: "DS18B20 thermometers behind a DS2482 or DS2483 on I2C", Config: func() driver.Config { return &ds18b20Config{I2C: b.I2C(0x18, 0x19, 0x1A, 0x1B)} }},
		{Name: "gps", Doc: "position, speed and height by a GPS receiver (NMEA) on a serial port", Config: func() driver.Config { return &gpsConfig{b.Serial(), 9600} }},
		{Name: "hd44780", Doc: "a character display by an HD44780 behind a PCF8574 on I2C", Config: func() driver.Config {
			return &hd44780Config{I2C: b.I2C(append([]uint16{0x27, 0x3F}, slices.Concat(board.Addresses(0x20, 0x26), board.Addresses(0x38, 0x3E))...)...), Columns: 16, Rows: 2}
		}},
		{Name: "hdc302x", Doc: "temperature and humidity by an HDC3020, HDC3021 or HDC3022 on I2C", Config: func() driver.Config { return newHDC302x(b.I2C(0x44, 0x45, 0x46, 0x47)) }},
		{Name: "hx711", Doc: "a load cell by an HX711 on two lines", Config: func() driver.Config { return &hx711Config{Gain: 128, board: b} }},
		{Name: "ina219", Doc: "voltage, current and power by an INA219 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina219} }},
		{Name: "ina226", Doc: "voltage, current and power by an INA226 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina226} }},
		{Name: "ina260", Doc: "voltage, current and power by an INA260 on I2C", Config: func() driver.Config { return newINA260(b.I2C(ina2xxAddresses...)) }},
		{Name: "max7219", Doc: "digits of seven segments by a MAX7219 on SPI", Config: func() driver.Config { return &max7219Config{SPI: b.SPI(), Digits: 8, Brightness: 8} }},
		{Name: "mcp23008", Doc: "switches and states by an MCP23008 on I2C", Config: func() driver.Config { return newExpander(b, mcp23008) }},
		{Name: "mcp23017", Doc: "switches and states by an MCP23017 on I2C", Config: func() driver.Config { return newExpander(b, mcp23017) }},
		{Name: "mcp3008", Doc: "voltages by an MCP3008 on SPI", Config: func() driver.Config {
			return &mcp3008Config{SPI: b.SPI(), Channels: []int{0, 1, 2, 3, 4, 5, 6, 7}, Reference: 3.3}
		}},
		{Name: "mcp9808", Doc: "temperature by an MCP9808 on I2C", Config: func() driver.Config { return newMCP9808(b.I2C(board.Addresses(0x18, 0x1F)...)) }},
		{Name: "mpu6050", Doc: "acceleration and rotation by an MPU6050 on I2C", Config: func() driver.Config { return newMPU(b, mpu6050) }},
		{Name: "mpu6500", Doc: "acceleration and rotation by an MPU6500 on I2C", Config: func() driver.Config { return newMPU(b, mpu6500) }},
		{Name: "mpu9250", Doc: "acceleration and rotation by an MPU9250 on I2C", Config: func() driver.Config { return newMPU(b, mpu9250) }},
		{Name: "neopixel", Doc: "the colour of a strip of WS2812B or SK6812 lamps on SPI", Config: func() driver.Config { return newStrip(b, neopixel) }},
		{Name: "pca9685", Doc: "servos and dimmed lamps by a PCA9685 on I2C", Config: func() driver.Config { return &pca9685Config{I2C: b.I2C(board.Addresses(0x40, 0x77)...)} }},
		{Name: "pcf8574", Doc: "switches and states by a PCF8574 or PCF8574A on I2C", Config: func() driver.Config { return newPCF857x(b, "PCF8574") }},
		{Name: "pcf8575", Doc: "switches and states by a PCF8575 on I2C", Config: func() driver.Config { return newPCF857x(b, "PCF8575") }},
		{Name: "pms5003", Doc: "dust in the air by a PMS5003 on a serial port", Config: func() driver.Config { return &pms5003Config{b.Serial()} }},
		{Name: "registers", Doc: "any simple sensor on I2C whose registers you describe", Config: func() driver.Config { return &registersConfig{I2C: b.I2C()} }},
		{Name: "scd4x", Doc: "carbon dioxide, temperature and humidity by an SCD40, SCD41 or SCD43 on I2C", Config: func() driver.Config { return newSCD4x(b.I2C(0x62)) }},
		{Name: "sgp30", Doc: "air quality by an SGP30 on I2C", Config: func() driver.Config { return newSGP30(b.I2C(0x58)) }},
		{Name: "sht4x", Doc: "temperature and humidity by an SHT40, SHT41, SHT43 or SHT45 on I2C", Config: func() driver.Config { return newSHT4x(b.I2C(0x44, 0x45, 0x46)) }},
		{Name: "ssd1306", Doc: "a display of 128 by 64 or 32 pixels by an SSD1306 on I2C", Config: func() driver.Config { return &ssd1306Config{I2C: b.I2C(0x3C, 0x3D), Height: 64} }},
		{Name: "tca9534", Doc: "switches and states by a TCA9534, PCA9534, PCA9554 or the like on I2C", Config: func() driver.Config { return newExpander(b, tca9534) }},
		{Name: "tca9535", Doc: "switches and states by a TCA9535, PCA9535, PCA9555 or the like on I2C", Config: func() driver.Config { return newExpander(b, tca9535) }},
		{Name: "tm1637", Doc: "digits of seven segments by a TM1637 on two lines", Config: func() driver.Config { return &tm1637Config{Digits: 4, Brightness: 4, board: b} }},
		{Name: "tmp102", Doc: "temperature by a TMP102 on I2C", Config: func() driver.Config { return newTMP102(b.I2C(0x48, 0x49, 0x4A, 0x4B)) }},
	}
}
