package chip

import (
	"agentsite/device/board"
	"agentsite/device/driver"
)

// Drivers returns the drivers of this room, for chips on b.
func Drivers(b *board.Board) []driver.Driver {
	return []driver.Driver{
		{Name: "ads1015", Doc: "voltages by an ADS1015 (12 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1015") }},
		{Name: "ads1115", Doc: "voltages by an ADS1115 (16 bits) on I2C", Config: func() driver.Config { return newADS1x15(b, "ADS1115") }},
		{Name: "aht20", Doc: "temperature and humidity by an AHT20 on I2C", Config: func() driver.Config { return &aht20Config{b.I2C(0x38)} }},
		{Name: "am2320", Doc: "temperature and humidity by an AM2320 on I2C", Config: func() driver.Config { return &am2320Config{b.I2C(0x5C)} }},
		{Name: "bh1750", Doc: "brightness by a BH1750 on I2C", Config: func() driver.Config { return &bh1750Config{b.I2C(0x23, 0x5C)} }},
		{Name: "bme280", Doc: "temperature, pressure and humidity by a BME280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BME280"} }},
		{Name: "bmp280", Doc: "temperature and pressure by a BMP280 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x76, 0x77), "BMP280"} }},
		{Name: "bmp180", Doc: "temperature and pressure by a BMP180 on I2C", Config: func() driver.Config { return &bmxx80Config{b.I2C(0x77), "BMP180"} }},
		{Name: "ccs811", Doc: "air quality by a CCS811 on I2C", Config: func() driver.Config { return &ccs811Config{b.I2C(0x5A, 0x5B)} }},
		{Name: "ds18b20", Doc: "DS18B20 thermometers behind a DS2482 or DS2483 on I2C", Config: func() driver.Config { return &ds18b20Config{I2C: b.I2C(0x18, 0x19, 0x1A, 0x1B)} }},
		{Name: "hdc302x", Doc: "temperature and humidity by an HDC3020, HDC3021 or HDC3022 on I2C", Config: func() driver.Config { return &hdc302xConfig{b.I2C(0x44, 0x45, 0x46, 0x47)} }},
		{Name: "ina219", Doc: "voltage, current and power by an INA219 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina219} }},
		{Name: "ina226", Doc: "voltage, current and power by an INA226 on I2C", Config: func() driver.Config { return &ina2xxConfig{b.I2C(ina2xxAddresses...), 0.1, ina226} }},
		{Name: "ina260", Doc: "voltage, current and power by an INA260 on I2C", Config: func() driver.Config { return &ina260Config{b.I2C(ina2xxAddresses...), ina260} }},
		{Name: "mcp9808", Doc: "temperature by an MCP9808 on I2C", Config: func() driver.Config {
			return &mcp9808Config{b.I2C(0x18, 0x19, 0x1A, 0x1B, 0x1C, 0x1D, 0x1E, 0x1F)}
		}},
		{Name: "registers", Doc: "any simple sensor on I2C whose registers you describe", Config: func() driver.Config { return &registersConfig{I2C: b.I2C()} }},
		{Name: "scd4x", Doc: "carbon dioxide, temperature and humidity by an SCD40, SCD41 or SCD43 on I2C", Config: func() driver.Config { return &scd4xConfig{b.I2C(0x62)} }},
		{Name: "sgp30", Doc: "air quality by an SGP30 on I2C", Config: func() driver.Config { return &sgp30Config{b.I2C(0x58)} }},
		{Name: "sht4x", Doc: "temperature and humidity by an SHT40, SHT41, SHT43 or SHT45 on I2C", Config: func() driver.Config { return &sht4xConfig{b.I2C(0x44, 0x45, 0x46)} }},
		{Name: "tmp102", Doc: "temperature by a TMP102 on I2C", Config: func() driver.Config { return &tmp102Config{b.I2C(0x48, 0x49, 0x4A, 0x4B)} }},
	}
}
