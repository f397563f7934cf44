"""A language model behind an OpenAI-compatible API that says what a test tells it to.

async with open_model_fake() as model:
    model.when("weather").calls("get_weather", {"city": "Rome"}).then().says("It is sunny.")
    model.says("Only this once.")        # the answer to the next request, whatever it asks
    ...                                  # a client is served by model.serve(stream)
    print(model.requests[-1].last_user_text)
"""

from hermes_fakes.model.fake import ModelFake, open_model_fake
from hermes_fakes.model.requests import ModelRequest
from hermes_fakes.model.script import Rule, Script

__all__ = ["ModelFake", "ModelRequest", "Rule", "Script", "open_model_fake"]
