def add(first_number: int, second_number: int) -> dict:
    set_variable("customer", "Bob")
    print("adding")
    return {"sum": first_number + second_number, "by": context.agent_name}
