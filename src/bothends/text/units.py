"""Units of numbers and signs that must come back, as patterns write them."""

# Signs look like letters to the linter.
# ruff: noqa: RUF001

UNITS = (
    "km/h|m/s|mph|kWh|MWh|kHz|MHz|GHz|THz|Hz|kbit/s|Mbit/s|Gbit/s|KiB|MiB|GiB|TiB|kB|KB|MB|GB|TB|PB"
    "|km²|m²|m³|cm²|cm³|km|cm|mm|µm|μm|nm|dm|kg|mg|µg|μg|ml|mL|dl|cl|hl|kW|MW|GW|mA|mV|kV|ms|µs|μs"
    "|ns|min|hPa|kPa|MPa|bar|dB|dpi|px|pt|em|rem|rpm|kcal|kJ|°C|°F|°|%|‰|€|£|\\$|¥|₽|USD|EUR|GBP"
    "|BRL|JPY|CHF|m|g|t|l|L|s|h|W|V|A|K|J|N|x|×"
)

#: Signs that few models write: © § ¶ † ‡ • and others, arrows, operators, shapes, emoji.
SIGNS = (
    "\u00a7\u00a9\u00ac\u00ae\u00b1\u00b6\u00d7\u00f7\u2020-\u2023\u2122\u2190-\u23ff\u2500-\u27bf"
    "\u27f0-\u27ff\u2900-\u2bff\U0001f000-\U0001faff"
)

#: Fractions of one character, and digits that are raised: vocabularies spell them otherwise, as 1 2
#: and as digits on the line.
FRACTIONS = "\u00bc-\u00be\u2150-\u215e\u2189"
RAISED = "\u00b2\u00b3\u00b9\u2070-\u207e"
