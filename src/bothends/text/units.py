"""Units of numbers, as patterns write them: what is beside a number that must come back."""

# Signs look like letters to the linter.
# ruff: noqa: RUF001

UNITS = (
    "km/h|m/s|mph|kWh|MWh|kHz|MHz|GHz|THz|Hz|kbit/s|Mbit/s|Gbit/s|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|PB"
    "|km²|m²|m³|cm²|cm³|km|cm|mm|µm|μm|nm|dm|kg|mg|µg|μg|ml|mL|dl|cl|hl|kW|MW|GW|mA|mV|kV|ms|µs|μs"
    "|ns|min|hPa|kPa|MPa|bar|dB|dpi|px|pt|em|rem|rpm|kcal|kJ|°C|°F|°|%|‰|€|£|\\$|¥|₽|USD|EUR|GBP"
    "|BRL|JPY|CHF|m|g|t|l|L|s|h|W|V|A|K|J|N|x|×"
)
