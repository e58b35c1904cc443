"""Function calls for measuring models: a request, and the schema of the arguments it needs.

Small schemas of the kinds that functions have: strings, numbers with bounds, enumerations, dates,
lists, nested objects, optional members.  None forbids extra members by itself.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["TASKS", "Task"]


@dataclass(frozen=True)
class Task:
    """One function call: its name, what a user asks, and the JSON Schema of the arguments."""

    name: str
    request: str
    schema: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, str]]:
        """Chat messages that ask for the arguments."""
        members = ", ".join(self.schema.get("properties", ()))
        shape = f" with {members}" if members else ""
        system = f"Call the function {self.name}. Answer with a JSON object{shape}."
        return [
            {"role": "system", "content": system},
            {"role": "user", "content": self.request},
        ]


_TEXT = {"type": "string", "minLength": 1, "maxLength": 40}
_DATE = {"type": "string", "format": "date"}
_TIME = {"type": "string", "pattern": "^([01][0-9]|2[0-3]):[0-5][0-9]$"}
_EMAIL = {"type": "string", "pattern": "^[a-z0-9._-]{1,20}@[a-z0-9-]{1,20}\\.[a-z]{2,6}$"}
_FLAG = {"type": "boolean"}


def _whole(low: int, high: int) -> dict[str, Any]:
    return {"type": "integer", "minimum": low, "maximum": high}


def _number(low: float, high: float) -> dict[str, Any]:
    return {"type": "number", "minimum": low, "maximum": high}


def _one_of(*options: str | int | None) -> dict[str, Any]:
    return {"enum": list(options)}


def _list(items: dict[str, Any], least: int, most: int, **more: Any) -> dict[str, Any]:
    return {"type": "array", "items": items, "minItems": least, "maxItems": most, **more}


def _call(name: str, request: str, optional: tuple[str, ...] = (), /, **members: Any) -> Task:
    required = [member for member in members if member not in optional]
    schema = {"type": "object", "properties": members, "required": required}
    return Task(name, request, schema)


_PLACE = {
    "type": "object",
    "properties": {"latitude": _number(-90, 90), "longitude": _number(-180, 180)},
    "required": ["latitude", "longitude"],
}
_GUEST = {
    "type": "object",
    "properties": {"name": _TEXT, "child": _FLAG},
    "required": ["name"],
}

TASKS: tuple[Task, ...] = (
    _call(
        "get_weather",
        "What will the weather be in Lisbon tomorrow, in Celsius?",
        city=_TEXT,
        unit=_one_of("celsius", "fahrenheit"),
        days=_whole(1, 14),
    ),
    _call(
        "book_table",
        "A table for four at Trattoria Verde on Friday at eight, outside please.",
        ("outside",),
        restaurant=_TEXT,
        people=_whole(1, 20),
        date=_DATE,
        time=_TIME,
        outside=_FLAG,
    ),
    _call(
        "send_email",
        "Write to ann@example.com that the meeting moved to Tuesday.",
        to=_list(_EMAIL, 1, 3, uniqueItems=True),
        subject=_TEXT,
        body={"type": "string", "maxLength": 120},
    ),
    _call(
        "convert_currency",
        "How much are 250 euros in Swedish crowns?",
        amount=_number(0, 1000000),
        source=_one_of("EUR", "USD", "GBP", "SEK"),
        target=_one_of("EUR", "USD", "GBP", "SEK"),
    ),
    _call(
        "set_alarm",
        "Wake me at half past six on weekdays.",
        time=_TIME,
        days=_list(
            _one_of("mon", "tue", "wed", "thu", "fri", "sat", "sun"), 1, 7, uniqueItems=True
        ),
    ),
    _call(
        "find_route",
        "How do I get from Kiel to Hamburg by train?",
        start=_TEXT,
        end=_TEXT,
        mode=_one_of("car", "train", "bike", "foot"),
    ),
    _call(
        "create_event",
        "Put the dentist on 3 March at ten in the calendar, for an hour.",
        ("place",),
        title=_TEXT,
        date=_DATE,
        time=_TIME,
        minutes=_whole(5, 600),
        place=_TEXT,
    ),
    _call(
        "play_music", "Play something calm by Satie.", artist=_TEXT, mood=_one_of("calm", "wild")
    ),
    _call(
        "order_pizza",
        "Two large pizzas with olives and mushrooms, to Main Street 5.",
        size=_one_of("small", "medium", "large"),
        toppings=_list(_one_of("olives", "mushrooms", "ham", "onions"), 1, 4, uniqueItems=True),
        count=_whole(1, 12),
        address=_TEXT,
    ),
    _call(
        "transfer_money",
        "Send Bob 35.50 for the tickets.",
        ("note",),
        recipient=_TEXT,
        amount={"type": "string", "pattern": "^[1-9][0-9]{0,4}\\.[0-9]{2}$"},
        note=_TEXT,
    ),
    _call(
        "search_flights",
        "Flights from ARN to LHR on 12 May, two people, no stops.",
        origin={"type": "string", "pattern": "^[A-Z]{3}$"},
        destination={"type": "string", "pattern": "^[A-Z]{3}$"},
        date=_DATE,
        passengers=_whole(1, 9),
        stops=_one_of(0, 1, 2),
    ),
    _call(
        "set_thermostat",
        "Make the bedroom 19.5 degrees.",
        room=_one_of("bedroom", "kitchen", "living room", "bath"),
        degrees={"type": "number", "minimum": 5, "maximum": 30, "multipleOf": 0.5},
    ),
    _call(
        "add_contact",
        "Save Carla Diaz, carla@example.org.",
        ("phone",),
        name=_TEXT,
        email=_EMAIL,
        phone={"type": "string", "pattern": "^\\+[0-9]{6,14}$"},
    ),
    _call(
        "translate",
        "Translate 'good morning' to Portuguese.",
        text={"type": "string", "minLength": 1, "maxLength": 80},
        language=_one_of("en", "de", "pt", "sv", "zh"),
    ),
    _call(
        "rate_film",
        "I give Metropolis nine of ten.",
        ("review",),
        title=_TEXT,
        stars=_whole(1, 10),
        review={"type": ["string", "null"], "maxLength": 60},
    ),
    _call(
        "water_plants",
        "Water the ferns for five minutes, and the roses for ten.",
        plants=_list(
            {
                "type": "object",
                "properties": {"name": _TEXT, "minutes": _whole(1, 60)},
                "required": ["name", "minutes"],
            },
            1,
            3,
        ),
    ),
    _call("lookup_word", "What does 'serendipity' mean?", word=_TEXT, examples=_whole(0, 3)),
    _call(
        "nearest_stop",
        "Where is the nearest bus stop to 59.33, 18.06?",
        place=_PLACE,
        kind=_one_of("bus", "tram", "train"),
    ),
    _call(
        "invite_guests",
        "Invite Dan and his daughter Eve to the party on 1 July.",
        event=_TEXT,
        date=_DATE,
        guests=_list(_GUEST, 1, 4),
    ),
    _call(
        "track_parcel",
        "Where is parcel SE1234567890?",
        number={"type": "string", "pattern": "^[A-Z]{2}[0-9]{10}$"},
    ),
    _call(
        "make_payment_plan",
        "Split 1200 into six monthly payments from 1 April.",
        total=_whole(1, 100000),
        payments=_whole(2, 24),
        first=_DATE,
    ),
    _call(
        "resize_image",
        "Make cat.png 640 by 480.",
        ("format",),
        file={"type": "string", "pattern": "^[a-z0-9_]{1,20}\\.(png|jpg|webp)$"},
        width=_whole(1, 8192),
        height=_whole(1, 8192),
        format=_one_of("png", "jpg", "webp", None),
    ),
    _call(
        "log_meal",
        "I had oatmeal and an apple for breakfast.",
        meal=_one_of("breakfast", "lunch", "dinner", "snack"),
        foods=_list(_TEXT, 1, 5),
    ),
    _call(
        "pick_payment",
        "Pay with the card that ends in 4242.",
        method={
            "oneOf": [
                {
                    "type": "object",
                    "properties": {
                        "kind": {"const": "card"},
                        "last4": {"type": "string", "pattern": "^[0-9]{4}$"},
                    },
                    "required": ["kind", "last4"],
                },
                {
                    "type": "object",
                    "properties": {"kind": {"const": "invoice"}, "email": _EMAIL},
                    "required": ["kind", "email"],
                },
            ]
        },
    ),
)
